-- Lessons, and what was forgotten for good. Of what was there only a column is new, which no row has yet, so a store of
-- any size is brought here in a moment.

-- What was learnt from what was said. None is removed: one that was forgotten keeps its number and nothing else.
CREATE TABLE lessons (
    lesson    INTEGER PRIMARY KEY,
    agent     INTEGER NOT NULL REFERENCES agents,
    number    INTEGER NOT NULL,  -- 1, 2, 3, … of the agent
    kind      TEXT NOT NULL,
    status    TEXT NOT NULL,
    last_seen INTEGER NOT NULL,
    data      TEXT NOT NULL      -- JSON of the whole lesson but its sources
) STRICT;
CREATE UNIQUE INDEX lessons_by_number ON lessons (agent, number);

CREATE TABLE lesson_sources (
    lesson INTEGER NOT NULL REFERENCES lessons,
    place  INTEGER NOT NULL REFERENCES messages,
    PRIMARY KEY (lesson, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX lesson_sources_by_place ON lesson_sources (place);

-- What was forgotten, and when: the receipt, which holds none of it.
CREATE TABLE erasures (
    erasure INTEGER PRIMARY KEY,
    agent   INTEGER NOT NULL REFERENCES agents,
    at      INTEGER NOT NULL,
    receipt TEXT NOT NULL       -- JSON
) STRICT;
CREATE INDEX erasures_by_agent ON erasures (agent, erasure);

-- A message that was forgotten keeps its place, its id and its hash, so that it is not stored again and the chain still
-- vouches for it; what was said is gone.
ALTER TABLE messages ADD COLUMN erased INTEGER;
