-- The record: agents, sessions, the log, session marks, the audit chain, capture reconciliation.
-- Times are microseconds since 1970 (UTC). Content is JSON text, so it never holds a NUL.

CREATE TABLE installation (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

CREATE TABLE agents (
    agent      INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    -- Counters, so that `status` does not grow with history.
    messages   INTEGER NOT NULL DEFAULT 0,
    chars      INTEGER NOT NULL DEFAULT 0,
    sessions   INTEGER NOT NULL DEFAULT 0,
    noise      INTEGER NOT NULL DEFAULT 0,
    duplicates INTEGER NOT NULL DEFAULT 0,
    conflicts  INTEGER NOT NULL DEFAULT 0,
    redactions INTEGER NOT NULL DEFAULT 0,
    blobs      INTEGER NOT NULL DEFAULT 0,
    audit_seq  INTEGER NOT NULL DEFAULT 0,
    audit_hash TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
    session       INTEGER PRIMARY KEY,
    agent         INTEGER NOT NULL REFERENCES agents,
    key           TEXT NOT NULL,
    last_seq      INTEGER NOT NULL DEFAULT 0,
    last_position INTEGER NOT NULL DEFAULT 0,
    chars         INTEGER NOT NULL DEFAULT 0,
    generation    INTEGER NOT NULL DEFAULT 0,
    started_at    INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    ended_at      INTEGER,
    end_reason    TEXT,
    UNIQUE (agent, key)
) STRICT;
CREATE INDEX sessions_by_activity ON sessions (agent, last_position);

CREATE TABLE messages (
    position     INTEGER PRIMARY KEY, -- order of arrival over the whole store: what derived work follows
    session      INTEGER NOT NULL REFERENCES sessions,
    seq          INTEGER NOT NULL,
    id           TEXT,
    role         TEXT NOT NULL,
    content      TEXT NOT NULL,
    ts           INTEGER NOT NULL,
    received_at  INTEGER NOT NULL,
    name         TEXT,
    tool_call_id TEXT,
    model        TEXT,
    origin       TEXT,
    meta         TEXT,
    noise        TEXT,
    redactions   TEXT,
    blobs        TEXT,
    chars        INTEGER NOT NULL,
    fingerprint  BLOB NOT NULL,       -- role, content, tool ids: tells a retry from a conflict
    hash         BLOB NOT NULL        -- the whole row, vouched for by the audit chain
) STRICT;
CREATE UNIQUE INDEX messages_by_seq ON messages (session, seq);
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
