-- What clients asked of each site for a purpose, and what became of it. A request for
-- several purposes is counted under each.
{{counted}}
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    p.value AS purpose,
    s.scheme || '://' || s.host || ':' || s.port AS site,
    sum(c.requests) AS requests,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'allow')) AS allowed,
    sum(c.requests * (g.reason = 'signal')) AS signal,
    sum(c.requests * (g.reason = 'licence')) AS licence,
    sum(c.requests * (g.judged <> 'no' AND g.verdict <> 'allow' AND g.reason NOT IN ('signal', 'licence'))) AS otherwise,
    sum(c.requests * (g.judged = 'no')) AS not_judged
FROM counted c
JOIN asker a ON a.id = c.asker
JOIN json_each(a.purpose) p
JOIN ground g ON g.id = c.ground
LEFT JOIN site s ON s.id = c.site
GROUP BY 2, 3
ORDER BY 2, 3;
