-- The views are no part of the record: they may be made anew at any time.
DROP VIEW IF EXISTS decisions;
CREATE VIEW decisions AS
SELECT
    e.seq,
    lower(substr(hex(e.id), 1, 8) || '-' || substr(hex(e.id), 9, 4) || '-' || substr(hex(e.id), 13, 4) || '-' ||
          substr(hex(e.id), 17, 4) || '-' || substr(hex(e.id), 21)) AS id,
    strftime('%Y-%m-%dT%H:%M:%S', e.time / 1000000, 'unixepoch') || printf('.%06dZ', e.time % 1000000) AS time,
    a.client, a.user, a.client_name, a.user_agent, a.tokens, a.sent AS sent_user_agent, a.mode,
    e.method,
    CASE WHEN s.id IS NULL THEN NULL ELSE s.scheme || '://' || s.host ||
        CASE WHEN (s.scheme = 'http' AND s.port = 80) OR (s.scheme = 'https' AND s.port = 443) THEN '' ELSE ':' || s.port END ||
        CAST(e.target AS TEXT) END AS url,
    s.scheme, s.host, s.port, CAST(e.target AS TEXT) AS target,
    g.judged, g.verdict, g.reason, g.token, g.group_name, g.rule, g.line, g.variant, g.settled, g.detail,
    p.state AS policy_state, p.stale AS policy_stale, coalesce(e.policy_age / 1000.0, max(0, e.time - p.time) / 1000000) AS policy_age_s, lower(hex(b.sha256)) AS robots_sha256,
    e.asked / 1000000.0 AS delay_s, e.waited / 1000000.0 AS waited_s,
    o.status, o.from_site, o.bytes_in, o.bytes_out, o.duration / 1000.0 AS duration_ms, o.truncated, o.error,
    r.heed, g.engine, c.hash AS configuration
FROM entry e
JOIN asker a ON a.id = e.asker
JOIN ground g ON g.id = e.ground
JOIN run r ON r.id = e.run
LEFT JOIN site s ON s.id = e.site
LEFT JOIN policy p ON p.id = g.policy
LEFT JOIN snapshot n ON n.id = p.snapshot
LEFT JOIN body b ON b.id = n.body
LEFT JOIN configuration c ON c.id = g.configuration
LEFT JOIN outcome o ON o.entry = e.seq;
