WITH whole AS (
  SELECT site, token, gap, delay, row_number() OVER (PARTITION BY site, token ORDER BY gap) AS rank,
    count(*) OVER (PARTITION BY site, token) AS all_gaps
  FROM (SELECT site, token, us - lag(us) OVER (PARTITION BY site, token ORDER BY n) AS gap,
    CAST(round(delay_s * 1000000) AS INTEGER) AS delay FROM requests WHERE robots = 0 AND category <> '') x
  WHERE gap IS NOT NULL
), each AS (
  SELECT site, token, gap, delay, row_number() OVER (PARTITION BY site, token ORDER BY gap) AS rank,
    count(*) OVER (PARTITION BY site, token) AS all_gaps
  FROM (SELECT site, token, us - lag(us) OVER (PARTITION BY site, token, network ORDER BY n) AS gap,
    CAST(round(delay_s * 1000000) AS INTEGER) AS delay FROM requests WHERE robots = 0 AND category <> '') x
  WHERE gap IS NOT NULL
), w AS (
  SELECT site, token, count(*) AS gaps,
    avg(CASE WHEN rank * 2 BETWEEN all_gaps AND all_gaps + 2 THEN gap - gap % 1000 END) / 1000000.0 AS median_s,
    max(CASE WHEN rank * 100 BETWEEN all_gaps * 5 AND all_gaps * 5 + 99 THEN gap - gap % 1000 END) / 1000000.0 AS p5_s,
    sum(delay > 0) AS limited, sum(delay > 0 AND gap >= delay) AS kept,
    sum(delay > 0 AND gap >= delay) * 1.0 / nullif(sum(delay > 0), 0) AS share,
    max(CASE WHEN delay > 0 THEN delay / 1000000.0 END) AS asked_s,
    sum(delay > 0 AND gap * 10 >= delay * 9) AS near,
    CASE WHEN (SELECT max(us % 1000000) FROM requests) = 0
      THEN sum(delay > 0 AND gap - 1000000 < delay AND delay < gap + 1000000) ELSE 0 END AS undecidable
  FROM whole GROUP BY site, token
), c AS (
  SELECT site, token, count(*) AS client_gaps,
    avg(CASE WHEN rank * 2 BETWEEN all_gaps AND all_gaps + 2 THEN gap - gap % 1000 END) / 1000000.0 AS client_median_s,
    max(CASE WHEN rank * 100 BETWEEN all_gaps * 5 AND all_gaps * 5 + 99 THEN gap - gap % 1000 END) / 1000000.0 AS client_p5_s,
    sum(delay > 0) AS client_limited, sum(delay > 0 AND gap >= delay) AS client_kept,
    sum(delay > 0 AND gap >= delay) * 1.0 / nullif(sum(delay > 0), 0) AS client_share
  FROM each GROUP BY site, token
), f AS (
  SELECT site, token, max(k) AS fastest_minute FROM (
    SELECT site, token, count(*) OVER (PARTITION BY site, token ORDER BY us
      RANGE BETWEEN 59999999 PRECEDING AND CURRENT ROW) AS k
    FROM requests WHERE robots = 0 AND category <> '') x GROUP BY site, token
)
SELECT r.site, r.token, w.asked_s, coalesce(w.gaps, 0) AS gaps, w.median_s, w.p5_s, coalesce(w.limited, 0) AS limited,
  coalesce(w.kept, 0) AS kept, w.share, coalesce(w.near, 0) AS near, coalesce(w.undecidable, 0) AS undecidable,
  coalesce(f.fastest_minute, 0) AS fastest_minute, coalesce(c.client_gaps, 0) AS client_gaps, c.client_median_s,
  c.client_p5_s, coalesce(c.client_limited, 0) AS client_limited, coalesce(c.client_kept, 0) AS client_kept, c.client_share
FROM (SELECT site, token, count(*) AS requests FROM requests WHERE category <> '' GROUP BY site, token) r
LEFT JOIN w ON w.site = r.site AND w.token = r.token LEFT JOIN c ON c.site = r.site AND c.token = r.token
LEFT JOIN f ON f.site = r.site AND f.token = r.token
ORDER BY r.requests DESC, r.site, r.token;
