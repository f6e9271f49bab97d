SELECT (SELECT value FROM about WHERE key = 'store'), NULL, count(*), 'clock_went_back', NULL
FROM (SELECT time + coalesce(waited, 0) AS decided, lag(time + coalesce(waited, 0)) OVER (ORDER BY seq) AS before
    FROM entry WHERE {{window}} AND id NOT IN (SELECT revises FROM main.entry WHERE revises IS NOT NULL))
WHERE decided + 5000000 < before;
