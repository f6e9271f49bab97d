-- What the clients asked for next after a site had redirected them. The record does not have where
-- a redirect leads: the next request of the same client is taken for it, when it came within 10 s
-- and among the next 1,000 decisions.
WITH chosen AS (SELECT * FROM standing WHERE {{chosen}}),
redirected AS (
    SELECT seq, asker, site, time + duration AS ended FROM chosen WHERE from_site = 1 AND status IN (301, 302, 303, 307, 308)),
followed AS (
    SELECT site, (SELECT seq FROM entry n
        WHERE n.seq BETWEEN r.seq + 1 AND r.seq + 1000 AND n.asker = r.asker AND n.time BETWEEN r.ended AND r.ended + 10000000
            AND n.id NOT IN (SELECT revises FROM entry WHERE revises IS NOT NULL)
        ORDER BY n.seq LIMIT 1) AS next
    FROM redirected r),
c AS (
    SELECT f.site, coalesce(o.late, n.ground) AS ground, {{failed}} AS failed
    FROM followed f LEFT JOIN entry n ON n.seq = f.next LEFT JOIN outcome o ON o.entry = f.next),
classed AS (
    SELECT c.site, CASE WHEN g.id IS NOT NULL THEN {{class}} END AS class
    FROM c LEFT JOIN ground g ON g.id = c.ground)
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    s.scheme || '://' || s.host || ':' || s.port AS site,
    count(*) AS redirects,
    count(class) AS followed,
    sum(class IS 'allowed') AS next_allowed,
    sum(class IS 'refused by rule') AS next_refused_by_rule,
    sum(class IS NOT NULL AND class NOT IN ('allowed', 'refused by rule')) AS next_other
FROM classed c
JOIN site s ON s.id = c.site
GROUP BY 2
ORDER BY 2;
