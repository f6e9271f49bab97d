-- Which rule, exception or reason decided, how often.
{{counted}}
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    coalesce(nullif(a.client_name, 'run'), (SELECT group_concat(value, ', ') FROM json_each(a.tokens)), '(no name)') AS agent,
    s.scheme || '://' || s.host || ':' || s.port AS site,
    g.judged, g.verdict, g.reason, g.group_name, g.rule, g.line, g.settled AS exception,
    sum(c.requests) AS requests,
    {{class}} AS class
FROM counted c
JOIN asker a ON a.id = c.asker
JOIN ground g ON g.id = c.ground
LEFT JOIN site s ON s.id = c.site
GROUP BY 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
ORDER BY 2, 3, 4, 5, 6, 7, 8, 9, 10, 12;
