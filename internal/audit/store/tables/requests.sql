-- What each agent asked of each site, and what became of it.
{{counted}},
classed AS (
    SELECT c.*, {{class}} AS class,
        {{would_be}} AS would_be
    FROM counted c JOIN ground g ON g.id = c.ground)
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    coalesce(nullif(a.client_name, 'run'), (SELECT group_concat(value, ', ') FROM json_each(a.tokens)), '(no name)') AS agent,
    s.scheme || '://' || s.host || ':' || s.port AS site,
    sum(c.requests) AS requests,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'allow')) AS allowed,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'refuse')) AS refused,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'would-refuse')) AS would_refuse,
    sum(c.requests * (g.judged = 'no')) AS not_judged,
    coalesce(sum(c.site_refused), 0) AS site_refused,
    sum(c.unknown) AS outcome_unknown,
    printf('%.6f', coalesce(sum(c.waited), 0) / 1000000.0) AS waited_s,
    CASE WHEN sum(c.turn) IS NOT NULL THEN printf('%.6f', sum(c.turn) / 1000000.0) END AS turns_s,
    coalesce(sum(c.bytes_in), 0) AS bytes_in,
    coalesce(sum(c.bytes_out), 0) AS bytes_out,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(c.first) / 1000000, 'unixepoch') AS first,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(c.last) / 1000000, 'unixepoch') AS last,
    {{classes}},
    {{refused_share}}
FROM classed c
JOIN asker a ON a.id = c.asker
JOIN ground g ON g.id = c.ground
LEFT JOIN site s ON s.id = c.site
GROUP BY 2, 3
ORDER BY 2, 3;
