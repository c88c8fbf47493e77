-- Turns: the stable section that the turns of a session were prepared with, one for each hand-over of its context.
-- Nothing of what was there changes, so a store of any size is brought here in a moment.

CREATE TABLE turn_memories (
    memory      INTEGER PRIMARY KEY, -- in the order they were made, whatever the clock says
    agent       INTEGER NOT NULL REFERENCES agents,
    session_key TEXT NOT NULL,       -- a turn may be prepared before anything was said in its session
    at          INTEGER NOT NULL,
    payload     BLOB NOT NULL        -- JSON, compressed by zlib
) STRICT;
CREATE INDEX turn_memories_by_session ON turn_memories (agent, session_key, memory, at); -- a time without the payloads
