WITH clients AS (
  SELECT site, network, count(*) AS requests, sum(robots) AS asked,
    sum(CASE WHEN target LIKE '/%' AND robots = 0 AND asset = 0 THEN 1 ELSE 0 END) AS pages,
    sum(asset) AS assets, sum(class IN ('allowed', 'not allowed', 'within cache life')) AS judged,
    sum(class = 'not allowed') AS not_allowed
  FROM requests WHERE token = '(no name)' GROUP BY site, network
), signs AS (
  SELECT 1 AS o, 'no assets' AS sign, * FROM clients WHERE pages >= 5 AND assets = 0
  UNION ALL SELECT 2, 'asked for robots.txt', * FROM clients WHERE asked > 0
  UNION ALL SELECT 3, 'both', * FROM clients WHERE pages >= 5 AND assets = 0 AND asked > 0
  UNION ALL SELECT 4, 'any client', * FROM clients
)
SELECT site, sign, count(*) AS clients, sum(requests) AS requests,
  sum(requests) * 1.0 / (SELECT count(*) FROM requests r WHERE r.site = signs.site AND r.token = '(no name)') AS share,
  sum(judged) AS judged, sum(not_allowed) AS not_allowed
FROM signs GROUP BY site, o, sign ORDER BY site, o;
