-- How much was judged, and by what.
{{counted}}
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    g.judged, g.verdict, g.reason, sum(c.requests) AS requests,
    {{class}} AS class,
    {{share}}
FROM (SELECT ground, failed, sum(requests) AS requests FROM counted GROUP BY 1, 2) c
JOIN ground g ON g.id = c.ground
GROUP BY 2, 3, 4, 6
ORDER BY 2, 3, 4, 6;
