-- By networks; what --ranges compares needs the files of the operators.
WITH clients AS (
  SELECT site, token, network, count(*) AS requests, sum(robots) AS robots,
    sum(class IN ('allowed', 'not allowed', 'within cache life')) AS judged, sum(class = 'not allowed') AS not_allowed,
    sum(count(*)) OVER (PARTITION BY site, token) AS all_requests,
    max(count(*)) OVER (PARTITION BY site, token) AS most
  FROM requests WHERE category <> '' GROUP BY site, token, network
)
SELECT site, token, CASE WHEN requests = most THEN 'dominant' ELSE 'rest' END AS side, count(*) AS networks,
  sum(requests) AS requests, sum(requests) * 1.0 / max(all_requests) AS share, sum(robots) AS robots,
  sum(judged) AS judged, sum(not_allowed) AS not_allowed,
  sum(not_allowed) * 1.0 / nullif(sum(judged), 0) AS not_allowed_share
FROM clients WHERE most < all_requests AND most > 0.9 * all_requests
GROUP BY site, token, CASE WHEN requests = most THEN 'dominant' ELSE 'rest' END
ORDER BY max(all_requests) DESC, site, token, side;
