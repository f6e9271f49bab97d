SELECT site, version, count(*) AS requests
FROM requests WHERE version > 0 GROUP BY site, version ORDER BY site, version;
