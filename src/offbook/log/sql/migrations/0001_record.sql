-- The record: agents, sessions, the log, session marks, the audit chain, capture reconciliation.
-- Times are microseconds since 1970 (UTC). Content is JSON text, so it never holds a NUL.

CREATE TABLE installation (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

-- Every commit writes each page it touched, so what changes with every message is kept to the log itself: what
-- is known of a session's end lies in its newest message, an agent's head in its newest audit event. The counters
-- and `touched` below are notes, written back now and then; reads add what has come since.
CREATE TABLE agents (
    agent      INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    counts     TEXT NOT NULL DEFAULT '{}', -- through the event noted next
    noted_seq  INTEGER NOT NULL DEFAULT 0,
    noted_hash TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
    session    INTEGER PRIMARY KEY,
    agent      INTEGER NOT NULL REFERENCES agents,
    key        TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    end_reason TEXT,
    ended_seq  INTEGER,                    -- the end holds while this is the newest message
    touched    INTEGER NOT NULL DEFAULT 0, -- order of activity among all sessions
    UNIQUE (agent, key)
) STRICT;
CREATE INDEX sessions_by_activity ON sessions (agent, touched);

CREATE TABLE messages (
    place         INTEGER PRIMARY KEY, -- session << 32 | seq: a session lies together, in order
    session       INTEGER NOT NULL REFERENCES sessions,
    seq           INTEGER NOT NULL,
    id            TEXT,
    role          TEXT NOT NULL,
    content       TEXT NOT NULL,
    ts            INTEGER NOT NULL,
    received_at   INTEGER NOT NULL,
    name          TEXT,
    tool_call_id  TEXT,
    model         TEXT,
    origin        TEXT,
    meta          TEXT,
    noise         TEXT,
    redactions    TEXT,
    blobs         TEXT,
    chars         INTEGER NOT NULL,
    chars_through INTEGER NOT NULL,    -- of the session, up to and with this message
    fingerprint   BLOB NOT NULL,       -- role, content, tool ids: tells a retry from a conflict
    hash          BLOB NOT NULL        -- the whole row, vouched for by the audit chain
) STRICT;
CREATE UNIQUE INDEX messages_by_id ON messages (session, id) WHERE id IS NOT NULL;

CREATE TABLE marks (
    mark    INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions,
    seq     INTEGER NOT NULL, -- it happened after this message
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    reason  TEXT
) STRICT;
CREATE INDEX marks_by_session ON marks (session, mark);

CREATE TABLE audit (
    agent    INTEGER NOT NULL REFERENCES agents,
    seq      INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    verb     TEXT NOT NULL,
    actor    TEXT NOT NULL,
    session  TEXT,
    details  TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash     TEXT NOT NULL,
    PRIMARY KEY (agent, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_session ON audit (agent, session, seq) WHERE session IS NOT NULL;

CREATE TABLE captures (
    agent     INTEGER NOT NULL REFERENCES agents,
    client    TEXT NOT NULL,
    sent      INTEGER NOT NULL,
    through   INTEGER NOT NULL, -- highest ordinal that arrived
    received  INTEGER NOT NULL, -- how many ordinals arrived
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (agent, client)
) STRICT, WITHOUT ROWID;
