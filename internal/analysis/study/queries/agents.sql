SELECT site, token, min(category) AS category, count(*) AS requests,
  count(*) * 1.0 / (SELECT count(*) FROM requests) AS share,
  sum(count(*)) OVER (ORDER BY count(*) DESC, site, token) * 1.0 / (SELECT count(*) FROM requests) AS cumulative,
  count(DISTINCT coalesce(address, '')) AS addresses, count(DISTINCT coalesce(network, '')) AS networks,
  count(DISTINCT coalesce(user_agent, '')) AS user_agents, sum(bytes) AS bytes
FROM requests GROUP BY site, token ORDER BY requests DESC, site, token;
