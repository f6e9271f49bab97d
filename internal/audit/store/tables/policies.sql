-- Under which robots.txt, or lack of one, requests were decided.
{{counted}}
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    s.scheme || '://' || s.host || ':' || s.port AS site,
    p.state, p.stale, p.own, p.status, nullif(lower(hex(b.sha256)), '') AS robots_sha256, b.size AS robots_bytes,
    sum(c.requests) AS requests,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(p.time) / 1000000, 'unixepoch') AS received,
    coalesce(sum(c.requests * (p.time < {{created}})), 0) AS earlier
FROM (SELECT ground, sum(requests) AS requests FROM counted GROUP BY 1) c
JOIN ground g ON g.id = c.ground
JOIN policy p ON p.id = g.policy
JOIN site s ON s.id = p.site
LEFT JOIN snapshot n ON n.id = p.snapshot
LEFT JOIN body b ON b.id = n.body
GROUP BY 2, 3, 4, 5, 6, 7
ORDER BY 2, 3, 4, 5, 6, 7;
