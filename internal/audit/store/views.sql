-- The views are no part of the record: they may be made anew at any time.

-- Every decision, with all that is recorded of it. One that takes another one
-- back names it in "revises"; both are about one request. A refused one has no
-- "sent_user_agent" and no "sent_from": the site received nothing. "agent" is the name in
-- reports: that of the [[client]] that applied, else the product tokens judged. In
-- "url" and "target" an octet that is not printable ASCII, a blank, and a backslash
-- that would begin such an escape are written as \xHH.
DROP VIEW IF EXISTS decisions;
CREATE VIEW decisions AS
SELECT
    e.seq,
    lower(substr(hex(e.id), 1, 8) || '-' || substr(hex(e.id), 9, 4) || '-' || substr(hex(e.id), 13, 4) || '-' ||
          substr(hex(e.id), 17, 4) || '-' || substr(hex(e.id), 21)) AS id,
    strftime('%Y-%m-%dT%H:%M:%S', e.time / 1000000, 'unixepoch') || printf('.%06dZ', e.time % 1000000) AS time,
    a.client, e.port AS client_port, a.user, a.client_name, a.user_agent, a.tokens, a.declared,
    CASE WHEN g.verdict <> 'refuse' THEN a.sent END AS sent_user_agent, CASE WHEN g.verdict <> 'refuse' THEN a.sent_from END AS sent_from, a.mode,
    e.method,
    CASE WHEN s.id IS NULL THEN NULL ELSE s.scheme || '://' || CASE WHEN instr(s.host, ':') THEN '[' || s.host || ']' ELSE s.host END ||
        CASE WHEN (s.scheme = 'http' AND s.port = 80) OR (s.scheme = 'https' AND s.port = 443) THEN '' ELSE ':' || s.port END ||
        e.shown END AS url,
    s.scheme, s.host, s.port, e.shown AS target, nullif(hex(e.raw), '') AS raw_target_hex, e.redacted, e.part, e.page,
    g.judged, g.verdict, g.reason, g.token, g.group_name, g.rule, g.line, g.variant, g.unseen AS unseen_rules, g.settled, g.detail,
    p.profile, p.state AS policy_state, p.status AS policy_status, p.stale AS policy_stale, p.own AS policy_own, p.error AS policy_error,
    coalesce(e.policy_age / 1000.0, max(0, e.time - p.time) / 1000000) AS policy_age_s, nullif(lower(hex(b.sha256)), '') AS robots_sha256,
    e.asked / 1000000.0 AS delay_s, e.waited / 1000000.0 AS waited_s, e.turn / 1000000.0 AS turn_s,
    o.status, o.from_site, o.bytes_in, o.bytes_out, o.duration / 1000.0 AS duration_ms, o.truncated, o.error,
    l.verdict AS late_verdict, l.reason AS late_reason, l.rule AS late_rule, l.line AS late_line,
    nullif(lower(substr(hex(e.revises), 1, 8) || '-' || substr(hex(e.revises), 9, 4) || '-' || substr(hex(e.revises), 13, 4) || '-' ||
          substr(hex(e.revises), 17, 4) || '-' || substr(hex(e.revises), 21)), '----') AS revises,
    r.heed, g.engine, c.hash AS configuration, r.note AS run_note,
    coalesce(nullif(a.client_name, 'run'), (SELECT group_concat(value, ', ') FROM json_each(a.tokens)), '(no name)') AS agent,
    (SELECT group_concat(value, ' ') FROM json_each(a.purpose)) AS purpose, g.signals, o.signals AS page_signals, o.site_status, o.site_answer,
    a.signed_key, a.signed_by, (SELECT group_concat(value, ' ') FROM json_each(a.also_obey)) AS also_obey
FROM (SELECT *, CASE
    WHEN length(CAST(target AS TEXT)) = length(target) AND CAST(target AS TEXT) NOT GLOB '*[^!-~]*' AND instr(target, CAST('\x' AS BLOB)) = 0 THEN CAST(target AS TEXT)
    ELSE (WITH RECURSIVE octets(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM octets WHERE i < length(target))
        SELECT group_concat(CASE
            WHEN substr(target, i, 1) BETWEEN x'21' AND x'7E' AND CAST(substr(target, i, 4) AS TEXT) NOT GLOB '\x[0-9A-Fa-f][0-9A-Fa-f]' THEN CAST(substr(target, i, 1) AS TEXT)
            ELSE '\x' || hex(substr(target, i, 1)) END, '') FROM octets)
    END AS shown FROM entry) e
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

-- One row for each request, for counting: its final decision. One that was
-- replaced by a later one is left out, and a verdict that followed a request
-- which was only observed replaces the decision before it.
DROP VIEW IF EXISTS standing;
CREATE VIEW standing AS
SELECT e.seq, e.time, e.asker, e.site, coalesce(o.late, e.ground) AS ground, e.waited, e.turn, e.asked,
    o.status, o.from_site, o.bytes_in, o.bytes_out, o.duration, o.truncated
FROM entry e
LEFT JOIN outcome o ON o.entry = e.seq
WHERE e.id NOT IN (SELECT revises FROM entry WHERE revises IS NOT NULL);

-- What refused, or would have while it was only observed: by site, agent and rule.
DROP VIEW IF EXISTS refusals;
CREATE VIEW refusals AS
SELECT s.scheme, s.host, s.port, coalesce(nullif(a.client_name, 'run'), (SELECT group_concat(value, ', ') FROM json_each(a.tokens)), '(no name)') AS agent,
    g.verdict, g.reason, g.group_name, g.rule, g.line, g.settled,
    sum(t.requests) AS requests,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(t.first) / 1000000, 'unixepoch') AS first,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(t.last) / 1000000, 'unixepoch') AS last
FROM (SELECT site, asker, ground, count(*) AS requests, min(time) AS first, max(time) AS last FROM standing
      WHERE ground IN (SELECT id FROM ground WHERE verdict <> 'allow' AND judged <> 'no') GROUP BY site, asker, ground) t
JOIN ground g ON g.id = t.ground
JOIN asker a ON a.id = t.asker
LEFT JOIN site s ON s.id = t.site
GROUP BY t.site, nullif(a.client_name, 'run'), a.tokens, g.verdict, g.reason, g.group_name, g.rule, g.line, g.settled
ORDER BY requests DESC;

-- What was asked of each site, and what became of it: the columns class_... make up
-- the requests. Those that were only observed are in would_be_... too, by the class
-- of the refusal. Of the older columns refused, would_refuse and not_judged, the last
-- one has all of which nothing was seen that could be judged, whatever became of them.
DROP VIEW IF EXISTS hosts;
CREATE VIEW hosts AS
SELECT s.scheme, s.host, s.port,
    sum(c.requests) AS requests,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'allow')) AS allowed,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'refuse')) AS refused,
    sum(c.requests * (g.judged <> 'no' AND g.verdict = 'would-refuse')) AS would_refuse,
    sum(c.requests * (g.judged = 'no')) AS not_judged,
    sum(c.waited) / 1000000.0 AS waited_s, sum(c.bytes) AS bytes_out,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(c.first) / 1000000, 'unixepoch') AS first,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(c.last) / 1000000, 'unixepoch') AS last,
    {{classes}}
FROM (SELECT c.*, {{class}} AS class,
        {{would_be}} AS would_be
      FROM (SELECT site, ground, {{failed}} AS failed, count(*) AS requests, sum(waited) AS waited, sum(bytes_out) AS bytes, min(time) AS first, max(time) AS last
            FROM standing GROUP BY 1, 2, 3) c JOIN ground g ON g.id = c.ground) c
JOIN ground g ON g.id = c.ground
LEFT JOIN site s ON s.id = c.site
GROUP BY c.site
ORDER BY requests DESC;

-- How much of what passed was judged, by what, and why some was not.
DROP VIEW IF EXISTS coverage;
CREATE VIEW coverage AS
SELECT judged, verdict, reason, requests, round(100.0 * requests / sum(requests) OVER (), 3) AS percent
FROM (SELECT g.judged, g.verdict, g.reason, sum(t.requests) AS requests
      FROM (SELECT ground, count(*) AS requests FROM standing GROUP BY ground) t JOIN ground g ON g.id = t.ground
      GROUP BY g.judged, g.verdict, g.reason
      UNION ALL
      SELECT 'no', iif(why LIKE 'refused from %', 'refuse', 'allow'), iif(why LIKE 'refused from %', 'record', coalesce(why, 'exempt')), sum(count)
      FROM exempt GROUP BY 2, 3)
ORDER BY requests DESC;
