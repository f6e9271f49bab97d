-- What each agent asked of all sites together, and what became of it.
{{counted}},
classed AS (
    SELECT c.*, {{class}} AS class,
        {{would_be}} AS would_be
    FROM counted c JOIN ground g ON g.id = c.ground),
names AS (
    SELECT id, client, coalesce(nullif(client_name, 'run'), (SELECT group_concat(value, ', ') FROM json_each(tokens)), '(no name)') AS agent,
        (SELECT group_concat(value, ' ') FROM json_each(also_obey)) AS also_obey
    FROM asker)
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    a.agent,
    group_concat(DISTINCT a.also_obey) AS also_obey,
    count(DISTINCT a.client) AS clients,
    count(DISTINCT s.scheme || '://' || s.host || ':' || s.port) AS sites,
    sum(c.requests) AS requests,
    printf('%.6f', coalesce(sum(c.waited), 0) / 1000000.0) AS waited_s,
    CASE WHEN sum(c.turn) IS NOT NULL THEN printf('%.6f', sum(c.turn) / 1000000.0) END AS turns_s,
    coalesce(sum(c.bytes_in), 0) AS bytes_in,
    coalesce(sum(c.bytes_out), 0) AS bytes_out,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(c.first) / 1000000, 'unixepoch') AS first,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(c.last) / 1000000, 'unixepoch') AS last,
    {{classes}},
    {{refused_share}}
FROM classed c
JOIN names a ON a.id = c.asker
LEFT JOIN site s ON s.id = c.site
GROUP BY 2
ORDER BY 2;
