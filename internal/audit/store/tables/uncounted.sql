-- Requests of which only the number is known, and those of heed for a robots.txt under the name of a client.
SELECT (SELECT value FROM about WHERE key = 'store') AS record, 'exempt ' || id AS id, count, CASE WHEN why IS NULL THEN 'exempt' WHEN why LIKE 'refused from %' THEN 'gaps' ELSE 'unrecorded' END AS what, why
FROM exempt WHERE {{counted}}
UNION ALL
SELECT (SELECT value FROM about WHERE key = 'store'), 'event ' || id, count, 'robots_asked_as_clients', NULL
FROM event WHERE kind = 'robots' AND {{window}}
