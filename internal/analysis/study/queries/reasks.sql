WITH asks AS (
  SELECT site, token, us, lead(us) OVER (PARTITION BY site, token ORDER BY n) AS next,
    (SELECT max(us) FROM requests) AS last
  FROM requests WHERE robots = 1 AND category <> ''
), h AS (SELECT 1 AS hours UNION ALL SELECT 6 AS hours UNION ALL SELECT 12 AS hours UNION ALL SELECT 24 AS hours UNION ALL SELECT 48 AS hours UNION ALL SELECT 72 AS hours UNION ALL SELECT 168 AS hours), tokens AS (
  SELECT hours, token, count(*) AS asks,
    sum(CASE WHEN next - us <= hours * 3600000000 THEN 1 ELSE 0 END) AS followed
  FROM h, asks WHERE next IS NOT NULL OR last - us >= hours * 3600000000
  GROUP BY hours, token
)
SELECT h.hours, count(token) AS tokens, coalesce(sum(asks = followed), 0) AS tokens_within,
  sum(asks = followed) * 1.0 / nullif(count(token), 0) AS share, coalesce(sum(asks), 0) AS asks,
  coalesce(sum(followed), 0) AS asks_within, sum(followed) * 1.0 / sum(asks) AS asks_share
FROM h LEFT JOIN tokens ON tokens.hours = h.hours GROUP BY h.hours ORDER BY h.hours;
