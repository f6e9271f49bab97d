package study

import (
	"fmt"
	"strings"
)

// queries make the tables from the table requests that load.sql reads, in SQLite and in
// DuckDB, which reads empty fields of CSV as NULL. They take the order of requests as it
// is: where a site's lines are too much out of order, the tables leave out what the
// queries compute.
var queries = map[string]string{
	"versions": `SELECT site, version, count(*) AS requests
FROM requests WHERE version > 0 GROUP BY site, version ORDER BY site, version;
`,
	"agents": `SELECT site, token, min(category) AS category, count(*) AS requests,
  count(*) * 1.0 / (SELECT count(*) FROM requests) AS share,
  sum(count(*)) OVER (ORDER BY count(*) DESC, site, token) * 1.0 / (SELECT count(*) FROM requests) AS cumulative,
  count(DISTINCT coalesce(address, '')) AS addresses, count(DISTINCT coalesce(network, '')) AS networks,
  count(DISTINCT coalesce(user_agent, '')) AS user_agents, sum(bytes) AS bytes
FROM requests GROUP BY site, token ORDER BY requests DESC, site, token;
`,
	"asked":     askedQuery(),
	"reasks":    reasksQuery(),
	"obedience": obedienceQuery,
	"kim": `WITH gaps AS (
  SELECT site, token, us - lag(us) OVER (PARTITION BY site, address, user_agent ORDER BY n) AS gap
  FROM requests
)
SELECT r.site, r.token, g.gaps, g.gaps_30s, g.gaps_30s * 1.0 / nullif(g.gaps, 0) AS delay,
  r.requests, r.robots, r.robots * 1.0 / r.requests AS disallow
FROM (SELECT site, token, count(*) AS requests, sum(robots) AS robots
      FROM requests WHERE category <> '' GROUP BY site, token) r
JOIN (SELECT site, token, count(gap) AS gaps, coalesce(sum(gap >= 30000000), 0) AS gaps_30s
      FROM gaps GROUP BY site, token) g ON g.site = r.site AND g.token = r.token
ORDER BY r.requests DESC, r.site, r.token;
`,
	"delays": delaysQuery(),
	"sessions": `WITH sessions AS (
  SELECT site, token, network, session, count(*) AS requests,
    (max(us) - min(us) - (max(us) - min(us)) % 1000) / 1000 AS length, min(n) AS first
  FROM requests WHERE category <> '' GROUP BY site, token, network, session
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY site, token ORDER BY requests) AS by_requests,
    row_number() OVER (PARTITION BY site, token ORDER BY length) AS by_length,
    count(*) OVER (PARTITION BY site, token) AS sessions,
    (SELECT robots FROM requests r WHERE r.n = first) AS robots_first
  FROM sessions
)
SELECT site, token, count(*) AS sessions, sum(requests) AS requests,
  avg(CASE WHEN by_requests * 2 BETWEEN sessions AND sessions + 2 THEN requests END) AS median_requests,
  avg(CASE WHEN by_length * 2 BETWEEN sessions AND sessions + 2 THEN length END) / 1000.0 AS median_s,
  max(length) / 1000.0 AS longest_s, sum(robots_first) AS robots_first,
  sum(robots_first) * 1.0 / count(*) AS share
FROM ranked GROUP BY site, token ORDER BY requests DESC, site, token;
`,
	"shifts":    shiftsQuery,
	"impostors": impostorsQuery,
	"undeclared": `WITH clients AS (
  SELECT site, network, count(*) AS requests, sum(robots) AS asked,
    sum(CASE WHEN target LIKE '/%' AND robots = 0 AND asset = 0 THEN 1 ELSE 0 END) AS pages,
    sum(asset) AS assets, sum(class IN ('allowed', 'not allowed', 'within cache life')) AS judged,
    sum(class = 'not allowed') AS not_allowed
  FROM requests WHERE token = '(no name)' GROUP BY site, network
), signs AS (
  SELECT 1 AS o, 'no assets' AS sign, * FROM clients WHERE pages >= 5 AND assets = 0
  UNION ALL SELECT 2, 'asked for robots.txt', * FROM clients WHERE asked > 0
  UNION ALL SELECT 3, 'both', * FROM clients WHERE pages >= 5 AND assets = 0 AND asked > 0
  UNION ALL SELECT 4, 'any client', * FROM clients
)
SELECT site, sign, count(*) AS clients, sum(requests) AS requests,
  sum(requests) * 1.0 / (SELECT count(*) FROM requests r WHERE r.site = signs.site AND r.token = '(no name)') AS share,
  sum(judged) AS judged, sum(not_allowed) AS not_allowed
FROM signs GROUP BY site, o, sign ORDER BY site, o;
`,
	"repeats": `WITH fetches AS (
  SELECT site, token, bytes, row_number() OVER (PARTITION BY site, token, network, target ORDER BY n) AS time
  FROM requests WHERE method = 'GET' AND status = 200 AND target LIKE '/%' AND category <> ''
)
SELECT r.site, r.token, count(f.time) AS fetched, coalesce(sum(f.time > 1), 0) AS repeated,
  sum(f.time > 1) * 1.0 / nullif(count(f.time), 0) AS share, r.not_modified,
  coalesce(sum(CASE WHEN f.time > 1 THEN f.bytes END), 0) AS repeated_bytes
FROM (SELECT site, token, count(*) AS requests, sum(method = 'GET' AND status = 304) AS not_modified
      FROM requests WHERE category <> '' GROUP BY site, token) r
LEFT JOIN fetches f ON f.site = r.site AND f.token = r.token
GROUP BY r.site, r.token, r.requests, r.not_modified ORDER BY r.requests DESC, r.site, r.token;
`,
	"refused": `SELECT site, token, count(*) AS requests, sum(status = 401) AS s401, sum(status = 402) AS s402,
  sum(status = 403) AS s403, sum(status = 429) AS s429, sum(status = 503) AS s503,
  sum(status IN (401, 402, 403, 429, 503)) AS refused,
  sum(status IN (401, 402, 403, 429, 503)) * 1.0 / count(*) AS share
FROM requests WHERE category <> '' GROUP BY site, token ORDER BY requests DESC, site, token;
`,
}

const obedienceQuery = `SELECT site, token, count(*) AS requests, sum(class = 'robots.txt') AS robots,
  sum(class = 'allowed') AS allowed, sum(class = 'not allowed') AS not_allowed,
  sum(class = 'within cache life') AS within_cache_life,
  sum(class IN ('allowed', 'not allowed', 'within cache life')) AS judged,
  sum(class = 'not allowed') * 1.0 / nullif(sum(class IN ('allowed', 'not allowed', 'within cache life')), 0) AS share,
  sum(class = 'no robots.txt') AS no_file, sum(class = 'robots.txt unreachable') AS unreachable,
  sum(class = 'rules unknown') AS unknown, sum(class = 'no path') AS no_path
FROM requests WHERE category <> '' GROUP BY site, token ORDER BY requests DESC, site, token;
`

// asksCTE is what the queries about asks for robots.txt begin with: each with the time of the
// same robot's next one at that site.
const asksCTE = `WITH asks AS (
  SELECT site, token, us, lead(us) OVER (PARTITION BY site, token ORDER BY n) AS next,
    (SELECT max(us) FROM requests) AS last
  FROM requests WHERE robots = 1 AND category <> ''
)`

func askedQuery() string {
	var b strings.Builder
	b.WriteString(asksCTE + `, intervals AS (
  SELECT site, token, (next - us - (next - us) % 1000) / 1000 AS gap,
    row_number() OVER (PARTITION BY site, token ORDER BY next - us) AS rank,
    count(*) OVER (PARTITION BY site, token) AS all_gaps
  FROM asks WHERE next IS NOT NULL
)
SELECT site, token, count(*) AS requests, sum(robots) AS asked,
  CASE WHEN sum(robots) = 0 THEN 'never'
    WHEN min(CASE WHEN robots = 1 THEN n END) = min(n) THEN 'yes' ELSE 'no' END AS "before",
  (SELECT avg(gap) / 1000.0 FROM intervals i WHERE i.site = r.site AND i.token = r.token
   AND rank * 2 BETWEEN all_gaps AND all_gaps + 2) AS median_interval_s`)
	for _, h := range askHours {
		us := h * 3_600_000_000
		fmt.Fprintf(&b, `,
  (SELECT sum(coalesce(next - us, %d) <= %d) * 1.0 / count(*) FROM asks a
   WHERE a.site = r.site AND a.token = r.token AND (next IS NOT NULL OR last - us >= %d)) AS within_%dh`, us+1, us, us, h)
	}
	b.WriteString("\nFROM requests r WHERE category <> '' GROUP BY site, token ORDER BY requests DESC, site, token;\n")
	return b.String()
}

func reasksQuery() string {
	hours := make([]string, len(askHours))
	for i, h := range askHours {
		hours[i] = fmt.Sprintf("SELECT %d AS hours", h)
	}
	return asksCTE + `, h AS (` + strings.Join(hours, " UNION ALL ") + `), tokens AS (
  SELECT hours, token, count(*) AS asks,
    sum(CASE WHEN next - us <= hours * 3600000000 THEN 1 ELSE 0 END) AS followed
  FROM h, asks WHERE next IS NOT NULL OR last - us >= hours * 3600000000
  GROUP BY hours, token
)
SELECT h.hours, count(token) AS tokens, coalesce(sum(asks = followed), 0) AS tokens_within,
  sum(asks = followed) * 1.0 / nullif(count(token), 0) AS share, coalesce(sum(asks), 0) AS asks,
  coalesce(sum(followed), 0) AS asks_within, sum(followed) * 1.0 / sum(asks) AS asks_share
FROM h LEFT JOIN tokens ON tokens.hours = h.hours GROUP BY h.hours ORDER BY h.hours;
`
}

// gapsCTE returns the common table of the gaps of a partition, named name.
func gapsCTE(name, partition string) string {
	return name + ` AS (
  SELECT site, token, gap, delay, row_number() OVER (PARTITION BY site, token ORDER BY gap) AS rank,
    count(*) OVER (PARTITION BY site, token) AS all_gaps
  FROM (SELECT site, token, us - lag(us) OVER (PARTITION BY ` + partition + ` ORDER BY n) AS gap,
    CAST(round(delay_s * 1000000) AS INTEGER) AS delay FROM requests WHERE robots = 0 AND category <> '') x
  WHERE gap IS NOT NULL
)`
}

// gapColumns returns the columns of the gaps in a common table, with a prefix before
// their names.
func gapColumns(prefix string) string {
	return fmt.Sprintf(`count(*) AS %[1]sgaps,
    avg(CASE WHEN rank * 2 BETWEEN all_gaps AND all_gaps + 2 THEN gap - gap %% 1000 END) / 1000000.0 AS %[1]smedian_s,
    max(CASE WHEN rank * 100 BETWEEN all_gaps * 5 AND all_gaps * 5 + 99 THEN gap - gap %% 1000 END) / 1000000.0 AS %[1]sp5_s,
    sum(delay > 0) AS %[1]slimited, sum(delay > 0 AND gap >= delay) AS %[1]skept,
    sum(delay > 0 AND gap >= delay) * 1.0 / nullif(sum(delay > 0), 0) AS %[1]sshare`, prefix)
}

func delaysQuery() string {
	return "WITH " + gapsCTE("whole", "site, token") + ", " + gapsCTE("each", "site, token, network") + `, w AS (
  SELECT site, token, ` + gapColumns("") + `,
    max(CASE WHEN delay > 0 THEN delay / 1000000.0 END) AS asked_s,
    sum(delay > 0 AND gap * 10 >= delay * 9) AS near,
    CASE WHEN (SELECT max(us % 1000000) FROM requests) = 0
      THEN sum(delay > 0 AND gap - 1000000 < delay AND delay < gap + 1000000) ELSE 0 END AS undecidable
  FROM whole GROUP BY site, token
), c AS (
  SELECT site, token, ` + gapColumns("client_") + `
  FROM each GROUP BY site, token
), f AS (
  SELECT site, token, max(k) AS fastest_minute FROM (
    SELECT site, token, count(*) OVER (PARTITION BY site, token ORDER BY us
      RANGE BETWEEN 59999999 PRECEDING AND CURRENT ROW) AS k
    FROM requests WHERE robots = 0 AND category <> '') x GROUP BY site, token
)
SELECT r.site, r.token, w.asked_s, coalesce(w.gaps, 0) AS gaps, w.median_s, w.p5_s, coalesce(w.limited, 0) AS limited,
  coalesce(w.kept, 0) AS kept, w.share, coalesce(w.near, 0) AS near, coalesce(w.undecidable, 0) AS undecidable,
  coalesce(f.fastest_minute, 0) AS fastest_minute, coalesce(c.client_gaps, 0) AS client_gaps, c.client_median_s,
  c.client_p5_s, coalesce(c.client_limited, 0) AS client_limited, coalesce(c.client_kept, 0) AS client_kept, c.client_share
FROM (SELECT site, token, count(*) AS requests FROM requests WHERE category <> '' GROUP BY site, token) r
LEFT JOIN w ON w.site = r.site AND w.token = r.token LEFT JOIN c ON c.site = r.site AND c.token = r.token
LEFT JOIN f ON f.site = r.site AND f.token = r.token
ORDER BY r.requests DESC, r.site, r.token;
`
}

const shiftsQuery = `WITH spans AS (
  SELECT * FROM requests WHERE category <> '' AND version > 0 AND (version = 1 OR age_s >= 86400)
), gaps AS (
  SELECT * FROM (SELECT *, us - lag(us) OVER (PARTITION BY site, token ORDER BY n) AS gap
    FROM requests WHERE robots = 0 AND category <> '') x
  WHERE gap IS NOT NULL AND version > 0 AND (version = 1 OR age_s >= 86400)
), counts AS (
  SELECT site, token, version + 1 AS to_version, 'not allowed' AS measure, sum(next_allowed = 0) AS x1, count(*) AS n1, 0 AS x2, 0 AS n2
    FROM spans WHERE next_allowed >= 0 AND class NOT IN ('robots.txt', 'no path') GROUP BY site, token, version
  UNION ALL SELECT site, token, version, 'not allowed', 0, 0, sum(allowed = 0), count(*)
    FROM spans WHERE allowed >= 0 GROUP BY site, token, version
  UNION ALL SELECT site, token, version + 1, 'robots.txt', sum(robots), count(*), 0, 0 FROM spans GROUP BY site, token, version
  UNION ALL SELECT site, token, version, 'robots.txt', 0, 0, sum(robots), count(*) FROM spans GROUP BY site, token, version
  UNION ALL SELECT site, token, version + 1, 'delay', sum(next_delay_s > 0 AND gap >= next_delay_s * 1000000), count(*), 0, 0
    FROM gaps WHERE site || ' ' || token || (version + 1) IN (SELECT site || ' ' || token || version FROM requests WHERE delay_s > 0
      UNION SELECT site || ' ' || token || (version + 1) FROM requests WHERE next_delay_s > 0) GROUP BY site, token, version
  UNION ALL SELECT site, token, version, 'delay', 0, 0, sum(delay_s > 0 AND gap >= delay_s * 1000000), count(*)
    FROM gaps WHERE site || ' ' || token || version IN (SELECT site || ' ' || token || version FROM requests WHERE delay_s > 0
      UNION SELECT site || ' ' || token || (version + 1) FROM requests WHERE next_delay_s > 0) GROUP BY site, token, version
), b AS (
  SELECT site, token, to_version, measure, sum(x1) AS x1, sum(n1) AS n1, sum(x2) AS x2, sum(n2) AS n2
  FROM counts WHERE to_version > 1 AND to_version <= (SELECT max(version) FROM requests r WHERE r.site = counts.site)
  GROUP BY site, token, to_version, measure
)
SELECT site, token, to_version - 1 AS from_version, to_version, measure, x1, n1, x1 * 1.0 / nullif(n1, 0) AS share1,
  x2, n2, x2 * 1.0 / nullif(n2, 0) AS share2,
  CASE WHEN n1 < 5 OR n2 < 5 THEN NULL WHEN x1 + x2 IN (0, n1 + n2) THEN 0.0
    ELSE (x2 * 1.0 / n2 - x1 * 1.0 / n1) / sqrt((x1 + x2) * 1.0 / (n1 + n2)
      * (1 - (x1 + x2) * 1.0 / (n1 + n2)) * (1.0 / n1 + 1.0 / n2)) END AS z
FROM b WHERE n1 + n2 > 0 ORDER BY site, token, to_version, measure;
`

const impostorsQuery = `-- By networks; what --ranges compares needs the files of the operators.
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
`
