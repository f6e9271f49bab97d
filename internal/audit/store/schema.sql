-- The record of decisions that heed keeps: who asked for what, what was
-- decided, by which bytes of which robots.txt, and what became of it.
--
-- Read the views (decisions, refusals, hosts, coverage) first: they have
-- readable names and times. The tables below hold each name once and each
-- fact in one row; a row is never changed, only added, and removed when its
-- time is over ([audit] keep, max_size). Times are microseconds since
-- 1970-01-01 UTC, durations microseconds, sizes octets.
--
-- Every table of the record is covered by the hashes in "commits"
-- (heed audit verify). The schema's number is in PRAGMA user_version: 4. Earlier
-- layouts lack the tables and columns whose comments name a later one.

-- What this file is: the hashes begin with it.
CREATE TABLE about (
    key   TEXT PRIMARY KEY, -- store: the id of this file, a UUID; created: when, RFC 3339; follows: the head of the record that this one continues
    value TEXT NOT NULL
) WITHOUT ROWID;

-- A heed that wrote to this file, or one run of heed run. Now and then it has
-- another row, with the time of its first one: what comes after that refers to
-- nothing before, so that the oldest part of the file can be removed.
CREATE TABLE run (
    id      INTEGER PRIMARY KEY,
    time    INTEGER NOT NULL, -- when it began
    heed    TEXT NOT NULL,    -- its version
    engine  INTEGER NOT NULL, -- the number of the rules by which it judged
    command TEXT,             -- the command line of heed run, a JSON array; NULL: heed serve
    note    TEXT              -- heed run --note
);

-- A version of the settings, secrets left out.
CREATE TABLE configuration (
    id   INTEGER PRIMARY KEY,
    hash TEXT NOT NULL, -- as heed config show and the log say it
    text TEXT NOT NULL  -- what it is made of
);

-- Who asked, as whom it was judged and what the site was shown.
CREATE TABLE asker (
    id          INTEGER PRIMARY KEY,
    client      TEXT NOT NULL, -- the address, as [audit] clients says: full, truncated or a keyed hash
    user        TEXT,          -- whose credentials for the proxy were shown
    client_name TEXT,          -- the [[client]] that fits
    mode        TEXT NOT NULL, -- enforce, observe or exempt
    user_agent  TEXT,          -- as received; NULL: none
    tokens      TEXT NOT NULL, -- the product tokens judged, a JSON array
    declared    INTEGER NOT NULL, -- 1: the operator declared them; 0: they come from user_agent
    sent        TEXT,          -- the User-Agent sent on when it differs
    sent_from   TEXT,          -- the From field sent in place of the client's
    purpose     TEXT,          -- what the client says that it crawls for, a JSON array; NULL: nothing
    signed_key  TEXT,          -- the key by which its requests are signed for the site, a JWK thumbprint (RFC 7638); NULL: they are not (layout 3)
    signed_by   TEXT,          -- the URL of the keys that the site is named (Signature-Agent); NULL: none (layout 3)
    also_obey   TEXT           -- the product tokens whose groups it obeys besides its own, a JSON array; NULL: none (layout 4)
);

CREATE TABLE site (
    id     INTEGER PRIMARY KEY,
    scheme TEXT NOT NULL,
    host   TEXT NOT NULL, -- canonical, without the port
    port   INTEGER NOT NULL
);

-- A robots.txt, byte for byte.
CREATE TABLE body (
    id     INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL,    -- of the bytes themselves
    size   INTEGER NOT NULL, -- of the bytes themselves
    zlib   BLOB NOT NULL     -- the bytes, compressed (RFC 1950)
);

-- One answer to a request for a robots.txt.
CREATE TABLE snapshot (
    id       INTEGER PRIMARY KEY,
    site     INTEGER NOT NULL REFERENCES site,
    time     INTEGER NOT NULL, -- when it was received
    asked_as TEXT,             -- the client's User-Agent it was asked under; NULL: heed's own
    chain    TEXT NOT NULL,    -- the URLs asked, redirects first; a JSON array
    status   INTEGER NOT NULL,
    headers  TEXT NOT NULL,    -- a JSON object of arrays
    body     INTEGER REFERENCES body -- NULL: the answer was no file
);

-- What heed judged by: an answer, or the lack of one, for as long as it held.
CREATE TABLE policy (
    id            INTEGER PRIMARY KEY,
    site          INTEGER NOT NULL REFERENCES site,
    snapshot      INTEGER REFERENCES snapshot, -- NULL: none was received
    profile       TEXT NOT NULL,
    state         TEXT NOT NULL, -- available, unavailable, unreachable
    status        INTEGER NOT NULL, -- of the last answer; 0: none
    time          INTEGER,       -- received or last confirmed; NULL: never
    fresh_until   INTEGER,
    stale         INTEGER NOT NULL,
    no_connection INTEGER NOT NULL, -- 1: the site itself was never reached
    own           INTEGER NOT NULL, -- 1: the operator's own file in place of the site's
    error         TEXT,
    note          TEXT
);

-- Why: a verdict and all that it rests on.
CREATE TABLE ground (
    id            INTEGER PRIMARY KEY,
    judged        TEXT NOT NULL, -- path, host, no
    verdict       TEXT NOT NULL, -- allow, refuse, would-refuse
    reason        TEXT NOT NULL,
    token         TEXT,          -- the product token whose group decided
    group_name    TEXT,
    rule          TEXT,
    line          INTEGER,       -- of robots.txt
    variant       TEXT,          -- the reading of the target that the rule matched, when not the target itself
    unseen        INTEGER NOT NULL, -- rules that might have refused what a tunnel hides
    settled       TEXT,          -- the operator's reason for the exception that decided
    detail        TEXT,          -- more about it, or about the delay asked for
    policy        INTEGER REFERENCES policy,        -- NULL: none was asked for
    configuration INTEGER REFERENCES configuration, -- NULL: the defaults have none
    engine        INTEGER NOT NULL,
    signals       TEXT           -- what the site says of the use of its pages, JSON; NULL: nothing was read
);

-- A decision, written before any byte of the request left or of the refusal returned.
CREATE TABLE entry (
    seq        INTEGER PRIMARY KEY, -- the order in this file
    id         BLOB NOT NULL,       -- the decision id, a UUIDv7
    time       INTEGER NOT NULL,
    run        INTEGER NOT NULL REFERENCES run,
    asker      INTEGER NOT NULL REFERENCES asker,
    port       INTEGER,             -- of the client; NULL where the address is not kept in full
    site       INTEGER REFERENCES site, -- NULL: no host was learnt
    ground     INTEGER NOT NULL REFERENCES ground,
    method     TEXT NOT NULL,
    target     BLOB NOT NULL,       -- path and query as judged and as sent
    raw        BLOB,                -- the target as received, when it differs
    redacted   INTEGER NOT NULL,    -- 1: values of the query are replaced by keyed hashes
    policy_age INTEGER,             -- milliseconds since the policy was received or confirmed; NULL: as entry.time and policy.time say, to the second
    asked      INTEGER,             -- the delay that the site or the settings ask for
    waited     INTEGER,             -- before the decision took effect: for the rules and for turns together
    part       TEXT,                -- as what a page asks for it (Sec-Fetch-Dest)
    page       TEXT,                -- the address of that page
    revises    BLOB,                -- the decision that this one takes back
    turn       INTEGER              -- the part of waited that was for turns; NULL: none (layout 4)
);

-- How an exchange ended: a row of its own, so that nothing is ever changed.
CREATE TABLE outcome (
    entry     INTEGER PRIMARY KEY, -- entry.seq
    in_commit INTEGER NOT NULL,    -- commits.n: exchanges end in another order than they begin
    status    INTEGER NOT NULL, -- sent to the client; 0: none, or not seen
    from_site INTEGER,          -- 1: the site's answer; 0: heed's own; NULL: another proxy sent the request, and heed did not see the answer (layout 4)
    bytes_in  INTEGER NOT NULL, -- of the request's body
    bytes_out INTEGER NOT NULL, -- of the answer's body
    duration  INTEGER NOT NULL,
    truncated INTEGER NOT NULL,
    error     TEXT,
    late      INTEGER REFERENCES ground, -- the verdict that came after the request: of one that was observed, or by what its page says
    site_status INTEGER, -- the site's status when heed sent another in its place
    site_answer TEXT,    -- the kind of the site's refusal: priced, challenge, signature-wanted, licence-wanted, forbidden, rate, legal
    signals     TEXT     -- what the page says of its use, JSON; NULL: nothing was read
);

CREATE INDEX revised ON entry (revises) WHERE revises IS NOT NULL;

-- Requests of which only the number is kept: those of exempt clients, those that
-- could not be recorded and went on, and those that were refused since they could not
-- be recorded, with one row for each time in which the record could not be written.
CREATE TABLE exempt (
    id    INTEGER PRIMARY KEY,
    time  INTEGER NOT NULL,
    count INTEGER NOT NULL,
    why   TEXT -- NULL: the client is exempt; "refused from TIME to TIME: ERROR": they were refused; else why they could not be recorded ([audit] on_failure = "continue")
);

-- What happened that is no decision. (layout 4)
CREATE TABLE event (
    id     INTEGER PRIMARY KEY,
    time   INTEGER NOT NULL,
    kind   TEXT NOT NULL, -- robots: heed asked for the robots.txt of site under a client's name, with count requests, redirects included; healed: the record was opened again after another program had removed or replaced its files, and count requests were refused meanwhile; bypassed: programs of a run opened about count connections that did not come to heed
    site   INTEGER REFERENCES site,
    name   TEXT,    -- robots: the client's User-Agent; bypassed: the program
    count  INTEGER,
    status INTEGER, -- robots: of the last answer; 0: there was none
    detail TEXT
);

-- The commits. A commit is over all rows added since the one before: of each
-- table those above that commit's last id, up to its own, and the outcomes
-- that name it in in_commit, ordered by entry. It and these rows are the leaves of
-- a Merkle tree (RFC 9162 section 2.1.1), and the roots of these trees, after the
-- table about, are those of a second one (heed help proofs). In layouts 2 and 3 each
-- hash covers the one before and the rows.
CREATE TABLE commits (
    n             INTEGER PRIMARY KEY,
    time          INTEGER NOT NULL,
    run           INTEGER NOT NULL, -- the last id of each table
    configuration INTEGER NOT NULL,
    asker         INTEGER NOT NULL,
    site          INTEGER NOT NULL,
    body          INTEGER NOT NULL,
    snapshot      INTEGER NOT NULL,
    policy        INTEGER NOT NULL,
    ground        INTEGER NOT NULL,
    entry         INTEGER NOT NULL,
    outcomes      INTEGER NOT NULL, -- how many name this commit
    exempt        INTEGER NOT NULL,
    pruned        BLOB,             -- set when rows were removed: what was, and the digest of what stays (see stub in prune_take.go)
    hash          BLOB NOT NULL,    -- the root of the second tree up to this commit
    marks         BLOB NOT NULL,    -- two octets for each row it covers, by which verify finds the one that was changed
    event         INTEGER NOT NULL, -- as exempt (layout 4)
    salt          BLOB NOT NULL,    -- random: of it come the salts of the leaves (layout 4)
    hashes        BLOB NOT NULL,    -- of the subtrees of commits that are complete with this one, the smallest first: its own leaf (layout 4)
    ended         BLOB NOT NULL     -- the entries whose outcomes it covers, as varints: the first, and differences (layout 4)
);

-- The hashes of commits that were removed, as their column hashes had them. (layout 4)
CREATE TABLE hashes (
    id     INTEGER PRIMARY KEY, -- of the leaves from 256 * id on; leaf 0 is the table about
    leaves INTEGER NOT NULL,    -- how many of them hashes has; 0: only the others
    hashes BLOB NOT NULL        -- those of the leaves, and of the larger subtrees that are complete with the last of 256
);

-- Numbers of requests, as the view standing has them, by the quarter of an hour in which
-- they were decided on. They are derived from entry and outcome, and no part of the chain:
-- heed audit verify counts again. (layout 3)
CREATE TABLE counts (
    period   INTEGER NOT NULL, -- its number: it begins 900 * period seconds after 1970
    asker    INTEGER NOT NULL,
    site     INTEGER NOT NULL, -- 0: no host was learnt
    ground   INTEGER NOT NULL, -- of the last verdict
    failed   INTEGER NOT NULL, -- 1: allowed, and heed answered that the site was not reached or that it failed
    requests INTEGER NOT NULL, -- 0: those that were counted here have got another verdict since
    last     INTEGER NOT NULL, -- when the last one was counted here, in seconds from the beginning of the period
    PRIMARY KEY (period, asker, site, ground, failed)
) WITHOUT ROWID;
