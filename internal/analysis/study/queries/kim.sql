WITH gaps AS (
  SELECT site, token, us - lag(us) OVER (PARTITION BY site, address, user_agent ORDER BY n) AS gap
  FROM requests
)
SELECT r.site, r.token, g.gaps, g.gaps_30s, g.gaps_30s * 1.0 / nullif(g.gaps, 0) AS delay,
  r.requests, r.robots, r.robots * 1.0 / r.requests AS disallow
FROM (SELECT site, token, count(*) AS requests, sum(robots) AS robots
      FROM requests WHERE category <> '' GROUP BY site, token) r
JOIN (SELECT site, token, count(gap) AS gaps, coalesce(sum(gap >= 30000000), 0) AS gaps_30s
      FROM gaps GROUP BY site, token) g ON g.site = r.site AND g.token = r.token
ORDER BY r.requests DESC, r.site, r.token;
