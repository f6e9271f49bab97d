WITH spans AS (
  SELECT * FROM requests WHERE category <> '' AND version > 0 AND (version = 1 OR age_s >= 86400)
), gaps AS (
  SELECT * FROM (SELECT *, us - lag(us) OVER (PARTITION BY site, token ORDER BY n) AS gap
    FROM requests WHERE robots = 0 AND category <> '') x
  WHERE gap IS NOT NULL AND version > 0 AND (version = 1 OR age_s >= 86400)
), counts AS (
  SELECT site, token, version + 1 AS to_version, 'not allowed' AS measure, sum(next_allowed = 0) AS x1, count(*) AS n1, 0 AS x2, 0 AS n2
    FROM spans WHERE next_allowed >= 0 AND class NOT IN ('robots.txt', 'no path') GROUP BY site, token, version
  UNION ALL SELECT site, token, version, 'not allowed', 0, 0, sum(allowed = 0), count(*)
    FROM spans WHERE allowed >= 0 GROUP BY site, token, version
  UNION ALL SELECT site, token, version + 1, 'robots.txt', sum(robots), count(*), 0, 0 FROM spans GROUP BY site, token, version
  UNION ALL SELECT site, token, version, 'robots.txt', 0, 0, sum(robots), count(*) FROM spans GROUP BY site, token, version
  UNION ALL SELECT site, token, version + 1, 'delay', sum(next_delay_s > 0 AND gap >= next_delay_s * 1000000), count(*), 0, 0
    FROM gaps WHERE site || ' ' || token || (version + 1) IN (SELECT site || ' ' || token || version FROM requests WHERE delay_s > 0
      UNION SELECT site || ' ' || token || (version + 1) FROM requests WHERE next_delay_s > 0) GROUP BY site, token, version
  UNION ALL SELECT site, token, version, 'delay', 0, 0, sum(delay_s > 0 AND gap >= delay_s * 1000000), count(*)
    FROM gaps WHERE site || ' ' || token || version IN (SELECT site || ' ' || token || version FROM requests WHERE delay_s > 0
      UNION SELECT site || ' ' || token || (version + 1) FROM requests WHERE next_delay_s > 0) GROUP BY site, token, version
), b AS (
  SELECT site, token, to_version, measure, sum(x1) AS x1, sum(n1) AS n1, sum(x2) AS x2, sum(n2) AS n2
  FROM counts WHERE to_version > 1 AND to_version <= (SELECT max(version) FROM requests r WHERE r.site = counts.site)
  GROUP BY site, token, to_version, measure
)
SELECT site, token, to_version - 1 AS from_version, to_version, measure, x1, n1, x1 * 1.0 / nullif(n1, 0) AS share1,
  x2, n2, x2 * 1.0 / nullif(n2, 0) AS share2,
  CASE WHEN n1 < 5 OR n2 < 5 THEN NULL WHEN x1 + x2 IN (0, n1 + n2) THEN 0.0
    ELSE (x2 * 1.0 / n2 - x1 * 1.0 / n1) / sqrt((x1 + x2) * 1.0 / (n1 + n2)
      * (1 - (x1 + x2) * 1.0 / (n1 + n2)) * (1.0 / n1 + 1.0 / n2)) END AS z
FROM b WHERE n1 + n2 > 0 ORDER BY site, token, to_version, measure;
