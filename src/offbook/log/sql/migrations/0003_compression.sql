-- Compression: summaries of the log, what models were paid for, the contexts that agents run on, small notes of a session.
-- Of what was there only indexes are new. One of them is over audit events, so each of those is read once on the way here.

-- What choosing needs of a summary; its text lies apart, so that many are looked at in few pages. None is ever removed:
-- the number given out last is how many there are.
CREATE TABLE summaries (
    summary   INTEGER PRIMARY KEY,               -- in the order they were made, whatever the clock says
    agent     INTEGER NOT NULL REFERENCES agents,
    level     INTEGER NOT NULL,
    number    INTEGER NOT NULL,                  -- 1, 2, 3, … of the agent and level
    session   INTEGER REFERENCES sessions,       -- NULL where it has several spans, as are the next two
    first_seq INTEGER,
    last_seq  INTEGER,
    first_at  INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    chars     INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    made_at   INTEGER NOT NULL,                  -- of the text it has now
    parent    INTEGER REFERENCES summaries,      -- the one that merges it
    brief     TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX summaries_by_number ON summaries (agent, level, number);
CREATE INDEX summaries_by_making ON summaries (agent, level, summary);
CREATE UNIQUE INDEX summaries_by_end ON summaries (session, level, last_seq) WHERE session IS NOT NULL;
CREATE INDEX summaries_unmerged ON summaries (agent, level, first_at) WHERE parent IS NULL;
CREATE INDEX summaries_unmerged_of_session ON summaries (session, level, first_seq)
    WHERE parent IS NULL AND session IS NOT NULL;

CREATE TABLE summary_texts (
    summary INTEGER PRIMARY KEY REFERENCES summaries,
    draft   TEXT NOT NULL -- JSON of the whole draft
) STRICT;

-- Which stretches of which sessions a summary stands for. Those of one level do not overlap, so an end is there once.
CREATE TABLE summary_spans (
    session   INTEGER NOT NULL REFERENCES sessions,
    level     INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    summary   INTEGER NOT NULL REFERENCES summaries,
    PRIMARY KEY (session, level, last_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX summary_spans_by_making ON summary_spans (session, level, summary);

CREATE TABLE completions (
    completion  INTEGER PRIMARY KEY,
    agent       INTEGER NOT NULL REFERENCES agents,
    fingerprint TEXT NOT NULL,
    at          INTEGER NOT NULL,
    answer      TEXT NOT NULL -- JSON: the text, who wrote it, what it cost
) STRICT;
CREATE UNIQUE INDEX completions_by_fingerprint ON completions (agent, fingerprint);

-- Kept with each completion: a budget is asked for before each call.
CREATE TABLE spending (
    day           TEXT NOT NULL, -- UTC, as in 2026-11-15
    agent         INTEGER NOT NULL REFERENCES agents,
    summarizer    TEXT NOT NULL,
    calls         INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    dollars       REAL NOT NULL,
    PRIMARY KEY (day, agent, summarizer)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_by_agent ON spending (agent);

CREATE TABLE contexts (
    context    INTEGER PRIMARY KEY, -- in the order they were handed out, whatever the clock says
    session    INTEGER NOT NULL REFERENCES sessions,
    generation INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    payload    BLOB NOT NULL        -- JSON, compressed by zlib
) STRICT;
CREATE INDEX contexts_by_session ON contexts (session, context, at); -- looks for a time without the payloads

CREATE TABLE session_notes (
    session INTEGER NOT NULL REFERENCES sessions,
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_making ON sessions (agent, session);

-- Why a context was what it was is asked of a session by verb. The verb of every message is left out and costs nothing.
CREATE INDEX audit_by_verb ON audit (agent, session, verb, seq, at) WHERE session IS NOT NULL AND verb <> 'onMessage';

CREATE INDEX holds_pinned ON holds (place, pin) WHERE pin IS NOT NULL; -- the pins of a session
