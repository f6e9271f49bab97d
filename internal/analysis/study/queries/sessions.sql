WITH sessions AS (
  SELECT site, token, network, session, count(*) AS requests,
    (max(us) - min(us) - (max(us) - min(us)) % 1000) / 1000 AS length, min(n) AS first
  FROM requests WHERE category <> '' GROUP BY site, token, network, session
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY site, token ORDER BY requests) AS by_requests,
    row_number() OVER (PARTITION BY site, token ORDER BY length) AS by_length,
    count(*) OVER (PARTITION BY site, token) AS sessions,
    (SELECT robots FROM requests r WHERE r.n = first) AS robots_first
  FROM sessions
)
SELECT site, token, count(*) AS sessions, sum(requests) AS requests,
  avg(CASE WHEN by_requests * 2 BETWEEN sessions AND sessions + 2 THEN requests END) AS median_requests,
  avg(CASE WHEN by_length * 2 BETWEEN sessions AND sessions + 2 THEN length END) / 1000.0 AS median_s,
  max(length) / 1000.0 AS longest_s, sum(robots_first) AS robots_first,
  sum(robots_first) * 1.0 / count(*) AS share
FROM ranked GROUP BY site, token ORDER BY requests DESC, site, token;
