SELECT site, token, count(*) AS requests, sum(class = 'robots.txt') AS robots,
  sum(class = 'allowed') AS allowed, sum(class = 'not allowed') AS not_allowed,
  sum(class = 'within cache life') AS within_cache_life,
  sum(class IN ('allowed', 'not allowed', 'within cache life')) AS judged,
  sum(class = 'not allowed') * 1.0 / nullif(sum(class IN ('allowed', 'not allowed', 'within cache life')), 0) AS share,
  sum(class = 'no robots.txt') AS no_file, sum(class = 'robots.txt unreachable') AS unreachable,
  sum(class = 'rules unknown') AS unknown, sum(class = 'no path') AS no_path
FROM requests WHERE category <> '' GROUP BY site, token ORDER BY requests DESC, site, token;
