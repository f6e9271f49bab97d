-- The decisions that the tables are about, each once, and their numbers: by client, site, verdict
-- with what it rests on, and hour (UTC).
WITH chosen AS (SELECT * FROM standing WHERE {{chosen}}),
counted AS (
    SELECT asker, site, ground, {{failed}} AS failed, time / 3600000000 AS hour, count(*) AS requests, sum(waited) AS waited, sum(turn) AS turn,
        sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out, sum(status IS NULL) AS unknown,
        sum(from_site = 1 AND status IN (401, 403, 429, 451, 503)) AS site_refused, min(time) AS first, max(time) AS last
    FROM chosen GROUP BY 1, 2, 3, 4, 5)