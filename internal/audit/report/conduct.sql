WITH r AS (
    SELECT *, time + waited AS sent, target = '/robots.txt' AS robots, reason IN ('signal', 'licence') AS stated,
        target <> '/robots.txt' AND (would_be IS 'refused by rule' OR class = 'refused by rule') AS breach
    FROM request),
let AS (SELECT * FROM r WHERE verdict <> 'refuse' AND NOT robots),
gap AS (
    SELECT agent, site, 'asked' AS kind, asked, time - lag(time) OVER (PARTITION BY agent, site ORDER BY time) AS gap FROM let
    UNION ALL
    SELECT agent, site, 'sent', asked, sent - lag(sent) OVER (PARTITION BY agent, site ORDER BY sent) FROM let),
placed AS (
    SELECT *, row_number() OVER (PARTITION BY kind, agent, site ORDER BY gap) AS place, count(*) OVER (PARTITION BY kind, agent, site) AS n
    FROM gap WHERE gap IS NOT NULL),
gaps AS (
    SELECT agent, site, kind, n, round(avg(gap) FILTER (WHERE place IN ((n + 1) / 2, n / 2 + 1))) / 1000000.0 AS median,
        max(gap) FILTER (WHERE place <= (5 * n + 99) / 100) / 1000000.0 AS p5,
        nullif(max(asked), 0) / 1000000.0 AS delay, sum(asked > 0) AS limited, sum(asked > 0 AND gap >= asked) AS kept
    FROM placed GROUP BY agent, site, kind),
minute AS (
    SELECT agent, site, max(n) AS most FROM (
        SELECT agent, site, count(*) OVER (PARTITION BY agent, site ORDER BY sent RANGE BETWEEN 59999999 PRECEDING AND CURRENT ROW) AS n FROM let)
    GROUP BY agent, site),
pair AS (
    SELECT agent, site, count(*) AS requests, sum(robots) AS robots_asked,
        min(time) FILTER (WHERE robots) AS robots_first, max(time) FILTER (WHERE robots) AS robots_last,
        sum(target = '' AND method IN ('CONNECT', 'TLS', 'TCP')) AS tunnels,
        sum(NOT robots AND (breach OR stated OR would_be IS 'postponed' OR would_be IS NULL AND verdict = 'allow' AND class <> 'not judged' AND reason NOT IN ('override', 'part'))) AS pages,
        sum(breach) AS breaches,
        count(*) FILTER (WHERE method = 'GET' AND NOT robots) - count(DISTINCT target) FILTER (WHERE method = 'GET' AND NOT robots) AS repeated
    FROM r GROUP BY agent, site)
SELECT p.agent, p.site, p.requests, p.robots_asked,
    strftime('%Y-%m-%dT%H:%M:%S', robots_first / 1000000, 'unixepoch') || printf('.%06dZ', robots_first % 1000000) AS robots_first,
    strftime('%Y-%m-%dT%H:%M:%S', robots_last / 1000000, 'unixepoch') || printf('.%06dZ', robots_last % 1000000) AS robots_last,
    p.tunnels, p.breaches * 1.0 / nullif(p.pages, 0) AS breach_share, p.pages AS pages_judged, p.breaches,
    coalesce(a.n, 0) AS gaps_asked_n, a.median AS gaps_asked_median_s, a.p5 AS gaps_asked_p5_s, a.delay AS gaps_asked_crawl_delay_s,
    a.kept * 1.0 / nullif(a.limited, 0) AS gaps_asked_kept_share, coalesce(a.limited, 0) AS gaps_asked_limited, coalesce(a.kept, 0) AS gaps_asked_kept,
    coalesce(s.n, 0) AS gaps_sent_n, s.median AS gaps_sent_median_s, s.p5 AS gaps_sent_p5_s, s.delay AS gaps_sent_crawl_delay_s,
    s.kept * 1.0 / nullif(s.limited, 0) AS gaps_sent_kept_share, coalesce(s.limited, 0) AS gaps_sent_limited, coalesce(s.kept, 0) AS gaps_sent_kept,
    coalesce(m.most, 0) AS fastest_minute, p.repeated
FROM pair p
LEFT JOIN gaps a ON (a.agent, a.site, a.kind) = (p.agent, p.site, 'asked')
LEFT JOIN gaps s ON (s.agent, s.site, s.kind) = (p.agent, p.site, 'sent')
LEFT JOIN minute m ON (m.agent, m.site) = (p.agent, p.site)
ORDER BY p.requests DESC, p.agent, p.site;
