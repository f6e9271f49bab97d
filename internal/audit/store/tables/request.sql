-- Each request once, as it was last decided on, with the names that reports have for it.
SELECT {{who}} AS agent, a.client AS address, a.user_agent, a.purpose AS purposes,
    coalesce(s.scheme || '://' || iif(instr(s.host, ':'), '[' || s.host || ']', s.host) || iif(s.scheme || s.port IN ('http80', 'https443'), '', ':' || s.port), '(no site)') AS site,
    c.time, c.method, CAST(c.target AS TEXT) AS target, coalesce(c.waited, 0) AS waited, coalesce(c.turn, 0) AS turn, coalesce(c.asked, 0) AS asked,
    c.status, c.from_site, c.bytes_in, c.bytes_out, c.site_answer, coalesce(g.signals, c.signals) AS signals,
    g.judged, g.verdict, g.reason, g.group_name AS "group", g.rule, g.line, g.settled AS exception,
    CASE WHEN NOT p.own THEN iif(p.stale, 'stale', p.state) END AS policy, p.id IS NOT NULL AS under_policy,
    1 AS requests, {{class}} AS class,
    {{would_be}} AS would_be
FROM (SELECT entry.*, outcome.*, coalesce(late, ground) AS final, {{failed}} AS failed
    FROM entry LEFT JOIN outcome ON entry = seq
    WHERE {{chosen}} AND id NOT IN (SELECT revises FROM main.entry WHERE revises IS NOT NULL)) c
JOIN asker a ON a.id = c.asker
JOIN ground g ON g.id = c.final
LEFT JOIN site s ON s.id = c.site
LEFT JOIN policy p ON p.id = g.policy;
