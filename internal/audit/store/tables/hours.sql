-- What was asked in each hour (UTC).
{{counted}},
classed AS (
    SELECT c.*, {{class}} AS class,
        {{would_be}} AS would_be
    FROM (SELECT hour, ground, failed, sum(requests) AS requests FROM counted GROUP BY 1, 2, 3) c JOIN ground g ON g.id = c.ground)
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    strftime('%Y-%m-%dT%H:00:00Z', c.hour * 3600, 'unixepoch') AS hour,
    sum(c.requests) AS requests,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'allow')) AS allowed,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'refuse')) AS refused,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'would-refuse')) AS would_refuse,
    sum(c.requests * (g.judged = 'no')) AS not_judged,
    {{classes}},
    {{refused_share}}
FROM classed c
JOIN ground g ON g.id = c.ground
GROUP BY 2
ORDER BY 2;
