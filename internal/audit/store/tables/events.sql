-- What heed itself asked of sites, and what bypassed it.
WITH events AS (
    SELECT 'own' AS kind, site, NULL AS name, status, json_array_length(chain) AS count, time FROM snapshot
    WHERE asked_as IS NULL AND time >= {{created}}
    UNION ALL
    SELECT kind, site, name, status, count, time FROM event)
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    e.kind,
    s.scheme || '://' || s.host || ':' || s.port AS site,
    e.name, e.status, sum(e.count) AS count,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(e.time) / 1000000, 'unixepoch') AS first,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(e.time) / 1000000, 'unixepoch') AS last
FROM events e
LEFT JOIN site s ON s.id = e.site
WHERE {{events}}
GROUP BY 2, 3, 4, 5
ORDER BY 2, 3, 4, 5;
