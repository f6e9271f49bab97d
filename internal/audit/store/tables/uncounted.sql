SELECT (SELECT value FROM about WHERE key = 'store') AS record, id, count, CASE WHEN why IS NULL THEN 'exempt' WHEN why LIKE 'refused from %' THEN 'gaps' ELSE 'unrecorded' END AS why
FROM exempt WHERE {{counted}}
UNION ALL
SELECT (SELECT value FROM about WHERE key = 'store'), NULL, count(*), 'clock_went_back'
FROM (SELECT time + coalesce(waited, 0) AS decided, lag(time + coalesce(waited, 0)) OVER (ORDER BY seq) AS before
    FROM entry WHERE {{window}} AND id NOT IN (SELECT revises FROM main.entry WHERE revises IS NOT NULL))
WHERE decided + 5000000 < before;
