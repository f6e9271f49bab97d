WITH asks AS (
  SELECT site, token, us, lead(us) OVER (PARTITION BY site, token ORDER BY n) AS next,
    (SELECT max(us) FROM requests) AS last
  FROM requests WHERE robots = 1 AND category <> ''
), intervals AS (
  SELECT site, token, (next - us - (next - us) % 1000) / 1000 AS gap,
    row_number() OVER (PARTITION BY site, token ORDER BY next - us) AS rank,
    count(*) OVER (PARTITION BY site, token) AS all_gaps
  FROM asks WHERE next IS NOT NULL
)
SELECT site, token, count(*) AS requests, sum(robots) AS asked,
  CASE WHEN sum(robots) = 0 THEN 'never'
    WHEN min(CASE WHEN robots = 1 THEN n END) = min(n) THEN 'yes' ELSE 'no' END AS "before",
  (SELECT avg(gap) / 1000.0 FROM intervals i WHERE i.site = r.site AND i.token = r.token
   AND rank * 2 BETWEEN all_gaps AND all_gaps + 2) AS median_interval_s,
  (SELECT sum(coalesce(next - us, 3600000001) <= 3600000000) * 1.0 / count(*) FROM asks a
   WHERE a.site = r.site AND a.token = r.token AND (next IS NOT NULL OR last - us >= 3600000000)) AS within_1h,
  (SELECT sum(coalesce(next - us, 21600000001) <= 21600000000) * 1.0 / count(*) FROM asks a
   WHERE a.site = r.site AND a.token = r.token AND (next IS NOT NULL OR last - us >= 21600000000)) AS within_6h,
  (SELECT sum(coalesce(next - us, 43200000001) <= 43200000000) * 1.0 / count(*) FROM asks a
   WHERE a.site = r.site AND a.token = r.token AND (next IS NOT NULL OR last - us >= 43200000000)) AS within_12h,
  (SELECT sum(coalesce(next - us, 86400000001) <= 86400000000) * 1.0 / count(*) FROM asks a
   WHERE a.site = r.site AND a.token = r.token AND (next IS NOT NULL OR last - us >= 86400000000)) AS within_24h,
  (SELECT sum(coalesce(next - us, 172800000001) <= 172800000000) * 1.0 / count(*) FROM asks a
   WHERE a.site = r.site AND a.token = r.token AND (next IS NOT NULL OR last - us >= 172800000000)) AS within_48h,
  (SELECT sum(coalesce(next - us, 259200000001) <= 259200000000) * 1.0 / count(*) FROM asks a
   WHERE a.site = r.site AND a.token = r.token AND (next IS NOT NULL OR last - us >= 259200000000)) AS within_72h,
  (SELECT sum(coalesce(next - us, 604800000001) <= 604800000000) * 1.0 / count(*) FROM asks a
   WHERE a.site = r.site AND a.token = r.token AND (next IS NOT NULL OR last - us >= 604800000000)) AS within_168h
FROM requests r WHERE category <> '' GROUP BY site, token ORDER BY requests DESC, site, token;
