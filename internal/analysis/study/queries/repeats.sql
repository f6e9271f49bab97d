WITH fetches AS (
  SELECT site, token, bytes, row_number() OVER (PARTITION BY site, token, network, target ORDER BY n) AS time
  FROM requests WHERE method = 'GET' AND status = 200 AND target LIKE '/%' AND category <> ''
)
SELECT r.site, r.token, count(f.time) AS fetched, coalesce(sum(f.time > 1), 0) AS repeated,
  sum(f.time > 1) * 1.0 / nullif(count(f.time), 0) AS share, r.not_modified,
  coalesce(sum(CASE WHEN f.time > 1 THEN f.bytes END), 0) AS repeated_bytes
FROM (SELECT site, token, count(*) AS requests, sum(method = 'GET' AND status = 304) AS not_modified
      FROM requests WHERE category <> '' GROUP BY site, token) r
LEFT JOIN fetches f ON f.site = r.site AND f.token = r.token
GROUP BY r.site, r.token, r.requests, r.not_modified ORDER BY r.requests DESC, r.site, r.token;
