-- How long sites took for the requests that they answered, without the waits for rules and turns.
WITH chosen AS (SELECT * FROM standing WHERE {{chosen}}),
same AS (SELECT id, min(id) OVER (PARTITION BY scheme, host, port) AS site FROM site),
timed AS (
    SELECT same.site, max(0, duration - coalesce(waited, 0)) / 1000000.0 AS seconds
    FROM chosen c JOIN same ON same.id = c.site
    WHERE from_site = 1 AND ground IN (SELECT id FROM ground WHERE judged = 'path')),
placed AS (
    SELECT site, seconds, row_number() OVER (PARTITION BY site ORDER BY seconds) AS place, count(*) OVER (PARTITION BY site) AS requests
    FROM timed)
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    s.scheme || '://' || s.host || ':' || s.port AS site,
    count(*) AS requests,
    printf('%.6f', avg(seconds)) AS mean_s,
    printf('%.6f', avg(seconds) FILTER (WHERE place IN ((requests + 1) / 2, requests / 2 + 1))) AS median_s,
    printf('%.6f', max(seconds) FILTER (WHERE place <= (95 * requests + 99) / 100)) AS p95_s,
    printf('%.6f', max(seconds)) AS longest_s
FROM placed p
JOIN site s ON s.id = p.site
GROUP BY p.site
ORDER BY 2;
