-- Recall: what search indexes beside the store cannot have again cheaply from the log (vectors), and what they
-- cannot have from it at all (retrievals, pins, supersessions, small notes of an agent).
-- Nothing of 0001 changes, so a store of any size is brought here in a moment.

-- The vectors of one agent by one model. The counter is kept with each write: counting would read every index page.
CREATE TABLE vector_sets (
    vector_set  INTEGER PRIMARY KEY,
    agent       INTEGER NOT NULL REFERENCES agents,
    model       TEXT NOT NULL,              -- its fingerprint
    vectors     INTEGER NOT NULL DEFAULT 0, -- how many there are
    last_number INTEGER NOT NULL,           -- given out so far; stays when all are dropped, so that none comes twice
    UNIQUE (agent, model)
) STRICT;

-- A row is about 400 bytes, so nine to a page. As with messages, the set is in the number: a set lies together, is read
-- in the order of its numbers and dropped as one range without an index of its own. (100,000 rows of three agents in
-- turns of 64 take 49.9 MB; with agent and model in each row and a second index over them, 48.8 MB.)
CREATE TABLE vectors (
    number     INTEGER PRIMARY KEY, -- vector_set << 40 | 1, 2, 3, …
    vector_set INTEGER NOT NULL REFERENCES vector_sets,
    place      INTEGER NOT NULL,    -- of the message; derived, so no reference that every check would follow
    part       INTEGER NOT NULL,
    data       BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX vectors_by_place ON vectors (vector_set, place, part);

-- What use has made of a message. A row without retrievals and pin is removed.
CREATE TABLE holds (
    place        INTEGER PRIMARY KEY REFERENCES messages,
    agent        INTEGER NOT NULL REFERENCES agents,
    retrievals   INTEGER NOT NULL DEFAULT 0,
    retrieved_at INTEGER,
    pin          INTEGER            -- 1, 2, 3, … in the order of pinning, whatever the clock says
) STRICT;
CREATE INDEX holds_by_pin ON holds (agent, pin) WHERE pin IS NOT NULL;
CREATE INDEX holds_by_retrieval ON holds (agent, retrieved_at) WHERE retrieved_at IS NOT NULL;

CREATE TABLE hold_counts (
    agent      INTEGER PRIMARY KEY REFERENCES agents,
    pinned     INTEGER NOT NULL DEFAULT 0,
    retrievals INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE supersessions (
    old_place INTEGER NOT NULL REFERENCES messages,
    new_place INTEGER NOT NULL REFERENCES messages,
    agent     INTEGER NOT NULL REFERENCES agents,
    kind      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    note      TEXT NOT NULL,
    PRIMARY KEY (old_place, new_place)
) STRICT, WITHOUT ROWID;
CREATE INDEX supersessions_by_new ON supersessions (new_place);

CREATE TABLE agent_notes (
    agent INTEGER NOT NULL REFERENCES agents,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (agent, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_notes_by_value ON agent_notes (name, value);
