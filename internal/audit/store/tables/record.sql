-- What the tables rest on: the record, who wrote it, and the head of its hashes.
{{counted}}
SELECT (SELECT value FROM about WHERE key = 'store') AS record,
    (SELECT value FROM about WHERE key = 'created') AS created,
    (SELECT group_concat(heed, ' ') FROM (SELECT DISTINCT heed FROM run ORDER BY heed)) AS heed,
    (SELECT group_concat(engine, ' ') FROM (SELECT DISTINCT engine FROM ground ORDER BY engine)) AS engine,
    (SELECT group_concat(profile, ' ') FROM (SELECT DISTINCT profile FROM policy ORDER BY profile)) AS profile,
    (SELECT group_concat(hash, ' ') FROM (SELECT DISTINCT hash FROM configuration ORDER BY hash)) AS configuration,
    coalesce(sum(requests), 0) AS requests,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(first) / 1000000, 'unixepoch') AS first,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(last) / 1000000, 'unixepoch') AS last,
    (SELECT coalesce(sum(count), 0) FROM exempt WHERE why IS NULL AND {{exempt}}) AS exempt,
    (SELECT coalesce(sum(count), 0) FROM exempt WHERE why NOT LIKE 'refused from %' AND {{exempt}}) AS unrecorded,
    (SELECT n FROM commits WHERE {{head}}) AS head_commit,
    (SELECT lower(hex(hash)) FROM commits WHERE {{head}}) AS head,
    (SELECT coalesce(sum(count), 0) FROM exempt WHERE why LIKE 'refused from %' AND {{exempt}}) AS refused_unrecorded
FROM counted;
