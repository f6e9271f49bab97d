SELECT site, token, count(*) AS requests, sum(status = 401) AS s401, sum(status = 402) AS s402,
  sum(status = 403) AS s403, sum(status = 429) AS s429, sum(status = 503) AS s503,
  sum(status IN (401, 402, 403, 429, 503)) AS refused,
  sum(status IN (401, 402, 403, 429, 503)) * 1.0 / count(*) AS share
FROM requests WHERE category <> '' GROUP BY site, token ORDER BY requests DESC, site, token;
