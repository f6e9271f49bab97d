-- How exchanges ended, by the status that was sent and who sent it.
WITH chosen AS (SELECT * FROM standing WHERE {{chosen}})
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    from_site, status, truncated, count(*) AS requests, coalesce(sum(bytes_out), 0) AS bytes_out,
    printf('%.6f', avg(duration) / 1000000.0) AS mean_duration_s
FROM chosen
GROUP BY 2, 3, 4
ORDER BY 2, 3, 4;
