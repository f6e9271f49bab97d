-- What was asked in each hour (UTC).
WITH chosen AS (SELECT * FROM standing WHERE {{chosen}})
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    strftime('%Y-%m-%dT%H:00:00Z', c.hour * 3600, 'unixepoch') AS hour,
    sum(c.requests) AS requests,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'allow')) AS allowed,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'refuse')) AS refused,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'would-refuse')) AS would_refuse,
    sum(c.requests * (g.judged = 'no')) AS not_judged
FROM (SELECT time / 3600000000 AS hour, ground, count(*) AS requests FROM chosen GROUP BY 1, 2) c
JOIN ground g ON g.id = c.ground
GROUP BY 2
ORDER BY 2;
