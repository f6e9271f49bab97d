-- The views are no part of the record: they may be made anew at any time.

-- Every decision, with all that is recorded of it. One that takes another one
-- back names it in "revises"; both are about one request.
DROP VIEW IF EXISTS decisions;
CREATE VIEW decisions AS
SELECT
    e.seq,
    lower(substr(hex(e.id), 1, 8) || '-' || substr(hex(e.id), 9, 4) || '-' || substr(hex(e.id), 13, 4) || '-' ||
          substr(hex(e.id), 17, 4) || '-' || substr(hex(e.id), 21)) AS id,
    strftime('%Y-%m-%dT%H:%M:%S', e.time / 1000000, 'unixepoch') || printf('.%06dZ', e.time % 1000000) AS time,
    a.client, e.port AS client_port, a.user, a.client_name, a.user_agent, a.tokens, a.declared, a.sent AS sent_user_agent, a.sent_from, a.mode,
    e.method,
    CASE WHEN s.id IS NULL THEN NULL ELSE s.scheme || '://' || CASE WHEN instr(s.host, ':') THEN '[' || s.host || ']' ELSE s.host END ||
        CASE WHEN (s.scheme = 'http' AND s.port = 80) OR (s.scheme = 'https' AND s.port = 443) THEN '' ELSE ':' || s.port END ||
        CAST(e.target AS TEXT) END AS url,
    s.scheme, s.host, s.port, CAST(e.target AS TEXT) AS target, nullif(hex(e.raw), '') AS raw_target_hex, e.redacted, e.part, e.page,
    g.judged, g.verdict, g.reason, g.token, g.group_name, g.rule, g.line, g.variant, g.unseen AS unseen_rules, g.settled, g.detail,
    p.profile, p.state AS policy_state, p.status AS policy_status, p.stale AS policy_stale, p.own AS policy_own, p.error AS policy_error,
    coalesce(e.policy_age / 1000.0, max(0, e.time - p.time) / 1000000) AS policy_age_s, nullif(lower(hex(b.sha256)), '') AS robots_sha256,
    e.asked / 1000000.0 AS delay_s, e.waited / 1000000.0 AS waited_s,
    o.status, o.from_site, o.bytes_in, o.bytes_out, o.duration / 1000.0 AS duration_ms, o.truncated, o.error,
    l.verdict AS late_verdict, l.reason AS late_reason, l.rule AS late_rule, l.line AS late_line,
    nullif(lower(substr(hex(e.revises), 1, 8) || '-' || substr(hex(e.revises), 9, 4) || '-' || substr(hex(e.revises), 13, 4) || '-' ||
          substr(hex(e.revises), 17, 4) || '-' || substr(hex(e.revises), 21)), '----') AS revises,
    r.heed, g.engine, c.hash AS configuration, r.note AS run_note
FROM entry e
JOIN asker a ON a.id = e.asker
JOIN ground g ON g.id = e.ground
JOIN run r ON r.id = e.run
LEFT JOIN site s ON s.id = e.site
LEFT JOIN policy p ON p.id = g.policy
LEFT JOIN snapshot n ON n.id = p.snapshot
LEFT JOIN body b ON b.id = n.body
LEFT JOIN configuration c ON c.id = g.configuration
LEFT JOIN outcome o ON o.entry = e.seq
LEFT JOIN ground l ON l.id = o.late;

-- One row for each request, for counting: the decision that stands at the end.
-- One that was taken back is left out, and a verdict that came after a request
-- which was only observed stands for the decision before it.
DROP VIEW IF EXISTS standing;
CREATE VIEW standing AS
SELECT e.seq, e.time, e.asker, e.site, coalesce(o.late, e.ground) AS ground, e.waited, e.asked,
    o.status, o.from_site, o.bytes_in, o.bytes_out, o.duration, o.truncated
FROM entry e
LEFT JOIN outcome o ON o.entry = e.seq
WHERE e.id NOT IN (SELECT revises FROM entry WHERE revises IS NOT NULL);

-- What refused, or would have while it was only observed: by site, agent and rule.
DROP VIEW IF EXISTS refusals;
CREATE VIEW refusals AS
SELECT s.scheme, s.host, s.port, coalesce(a.client_name, (SELECT group_concat(value, ' ') FROM json_each(a.tokens)), '(no name)') AS agent,
    g.verdict, g.reason, g.group_name, g.rule, g.line, g.settled,
    sum(t.requests) AS requests,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(t.first) / 1000000, 'unixepoch') AS first,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(t.last) / 1000000, 'unixepoch') AS last
FROM (SELECT site, asker, ground, count(*) AS requests, min(time) AS first, max(time) AS last FROM standing
      WHERE ground IN (SELECT id FROM ground WHERE verdict <> 'allow' AND judged <> 'no') GROUP BY site, asker, ground) t
JOIN ground g ON g.id = t.ground
JOIN asker a ON a.id = t.asker
LEFT JOIN site s ON s.id = t.site
GROUP BY t.site, a.client_name, a.tokens, g.verdict, g.reason, g.group_name, g.rule, g.line, g.settled
ORDER BY requests DESC;

-- What was asked of each site, and what became of it. not_judged are counted
-- apart, whatever became of them.
DROP VIEW IF EXISTS hosts;
CREATE VIEW hosts AS
SELECT s.scheme, s.host, s.port,
    sum(t.requests) AS requests,
    sum(t.requests * (g.judged <> 'no' AND g.verdict = 'allow')) AS allowed,
    sum(t.requests * (g.judged <> 'no' AND g.verdict = 'refuse')) AS refused,
    sum(t.requests * (g.judged <> 'no' AND g.verdict = 'would-refuse')) AS would_refuse,
    sum(t.requests * (g.judged = 'no')) AS not_judged,
    sum(t.waited) / 1000000.0 AS waited_s, sum(t.bytes) AS bytes_out,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(t.first) / 1000000, 'unixepoch') AS first,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(t.last) / 1000000, 'unixepoch') AS last
FROM (SELECT site, ground, count(*) AS requests, sum(waited) AS waited, sum(bytes_out) AS bytes, min(time) AS first, max(time) AS last
      FROM standing GROUP BY site, ground) t
JOIN ground g ON g.id = t.ground
LEFT JOIN site s ON s.id = t.site
GROUP BY t.site
ORDER BY requests DESC;

-- How much of what passed was judged, by what, and why some was not.
DROP VIEW IF EXISTS coverage;
CREATE VIEW coverage AS
SELECT judged, verdict, reason, requests, round(100.0 * requests / sum(requests) OVER (), 3) AS percent
FROM (SELECT g.judged, g.verdict, g.reason, sum(t.requests) AS requests
      FROM (SELECT ground, count(*) AS requests FROM standing GROUP BY ground) t JOIN ground g ON g.id = t.ground
      GROUP BY g.judged, g.verdict, g.reason
      UNION ALL
      SELECT 'no', 'allow', coalesce(why, 'exempt'), sum(count) FROM exempt GROUP BY why)
ORDER BY requests DESC;
