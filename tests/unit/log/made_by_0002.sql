-- A store as schema version 2 left it, with some of all that recall keeps, dumped with sqlite3's iterdump. Never change it.
PRAGMA application_id = 16756748;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE agent_notes (
    agent INTEGER NOT NULL REFERENCES agents,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (agent, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "agent_notes" VALUES(1,'consent','on');
CREATE TABLE agents (
    agent      INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    counts     TEXT NOT NULL DEFAULT '{}', -- through the event noted next
    noted_seq  INTEGER NOT NULL DEFAULT 0,
    noted_hash TEXT NOT NULL
) STRICT;
INSERT INTO "agents" VALUES(1,'main','{"messages":5,"chars":80,"sessions":2,"noise":0,"duplicates":0,"conflicts":0,"redactions":0,"blobs":0,"auditEvents":6}',6,'7d0be8b60a1206d621cb9f3d887f6282e26333b1a3a668c9efbe39f0757874c6');
INSERT INTO "agents" VALUES(2,'other','{"messages":1,"chars":23,"sessions":1,"noise":0,"duplicates":0,"conflicts":0,"redactions":0,"blobs":0,"auditEvents":1}',1,'099860692dd5b436d4be4969a33c38b3f4306c5523976e8fb4de17db742e10ee');
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
INSERT INTO "audit" VALUES(1,1,1794748598200970,'onMessage','test','chat','{"accepted":4,"chars":61,"firstSeq":1,"hash":"6d5da99b9195b63fe4b3c14c2c111e605c11188b37609981920b7bca3ee320da","lastSeq":4,"opened":1}','0000000000000000000000000000000000000000000000000000000000000000','d95ed17d031e53f0fc837a9474e47e3cb72b675d4329a186258e9fa1ad8317b4');
INSERT INTO "audit" VALUES(1,2,1794748598202867,'onMessage','test','work','{"accepted":1,"chars":19,"firstSeq":1,"hash":"08c8ee6da61b8610fe2b9648b53061e9bb2a0b3a12d570f1528e9eb031e77b00","lastSeq":1,"opened":1}','d95ed17d031e53f0fc837a9474e47e3cb72b675d4329a186258e9fa1ad8317b4','d5528c1245f54cabb41b6af906b30623a288f03b7606502c530a966326a66905');
INSERT INTO "audit" VALUES(1,3,1794748598206357,'recall','test',NULL,'{}','d5528c1245f54cabb41b6af906b30623a288f03b7606502c530a966326a66905','84e18ce5373b5dbc85d7a167c4c27dfc342b8404d9b0575303a41968d2be77d6');
INSERT INTO "audit" VALUES(1,4,1794748598207020,'pin','test',NULL,'{"changed":1}','84e18ce5373b5dbc85d7a167c4c27dfc342b8404d9b0575303a41968d2be77d6','fe60db1d05ef4b30fcc7bff2cd5f44d580cbf4a7bfee17c2d0b0608a0ff3c532');
INSERT INTO "audit" VALUES(1,5,1794748598207436,'supersede','test',NULL,'{}','fe60db1d05ef4b30fcc7bff2cd5f44d580cbf4a7bfee17c2d0b0608a0ff3c532','71723e34bd8bc651e3fba797af3fc62b45729c62099a44ec9ff5b13713314fb5');
INSERT INTO "audit" VALUES(1,6,1794748598207734,'cross','test',NULL,'{}','71723e34bd8bc651e3fba797af3fc62b45729c62099a44ec9ff5b13713314fb5','7d0be8b60a1206d621cb9f3d887f6282e26333b1a3a668c9efbe39f0757874c6');
INSERT INTO "audit" VALUES(2,1,1794748598203580,'onMessage','test','chat','{"accepted":1,"chars":23,"firstSeq":1,"hash":"48b6cb664a30b89f3961af33bd44153de679447d66ff03b095603cc72b562e99","lastSeq":1,"opened":1}','0000000000000000000000000000000000000000000000000000000000000000','099860692dd5b436d4be4969a33c38b3f4306c5523976e8fb4de17db742e10ee');
CREATE TABLE captures (
    agent     INTEGER NOT NULL REFERENCES agents,
    client    TEXT NOT NULL,
    sent      INTEGER NOT NULL,
    through   INTEGER NOT NULL, -- highest ordinal that arrived
    received  INTEGER NOT NULL, -- how many ordinals arrived
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (agent, client)
) STRICT, WITHOUT ROWID;
CREATE TABLE hold_counts (
    agent      INTEGER PRIMARY KEY REFERENCES agents,
    pinned     INTEGER NOT NULL DEFAULT 0,
    retrievals INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO "hold_counts" VALUES(1,1,2);
CREATE TABLE holds (
    place        INTEGER PRIMARY KEY REFERENCES messages,
    agent        INTEGER NOT NULL REFERENCES agents,
    retrievals   INTEGER NOT NULL DEFAULT 0,
    retrieved_at INTEGER,
    pin          INTEGER            -- 1, 2, 3, … in the order of pinning, whatever the clock says
) STRICT;
INSERT INTO "holds" VALUES(4294967297,1,1,1794748598206357,NULL);
INSERT INTO "holds" VALUES(4294967298,1,1,1794748598206357,1);
CREATE TABLE installation (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
INSERT INTO "installation" VALUES('key',X'FD85BA02749B31FB6716505EBA5FB6240E1699D4FEDDD246A605477B947D62E6');
INSERT INTO "installation" VALUES('id',X'38393162613164393531383236633661');
CREATE TABLE marks (
    mark    INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions,
    seq     INTEGER NOT NULL, -- it happened after this message
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    reason  TEXT
) STRICT;
INSERT INTO "marks" VALUES(1,1,0,1794744000000000,'first',NULL);
INSERT INTO "marks" VALUES(2,2,0,1794744000000000,'first',NULL);
INSERT INTO "marks" VALUES(3,3,0,1794744000000000,'first',NULL);
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
INSERT INTO "messages" VALUES(4294967297,1,1,NULL,'user','"The ferry to Calais leaves at 9:15."',1794744000000000,1794748598200970,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,35,35,X'2FE6F4A6FFDBC32EE85283F8C02D9998',X'AB257B1916F4AB938C25E2E498BDDE1AC15F892ED0681377A8752A8B14A04EFF');
INSERT INTO "messages" VALUES(4294967298,1,2,NULL,'user','"No, at 9:45."',1794744000000000,1794748598200970,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,12,47,X'E1C93018BE2B14650789BB874D07F3C1',X'4B7EA25BCE14812D3B02347EC5255E308041A2CA50D7395CD94BAE31098F4A39');
INSERT INTO "messages" VALUES(4294967299,1,3,NULL,'user','"你好 👋"',1794744000000000,1794748598200970,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,4,51,X'FBF5A25549C1872DA1C3C7C7776507A6',X'56AE4380DAB30ADC6634F66B0212B63858C99EE5671365A378F7A31894C2AFAA');
INSERT INTO "messages" VALUES(4294967300,1,4,NULL,'user','"Thank you!"',1794744000000000,1794748598200970,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,10,61,X'93758CB917E7863446B95CF8A049148C',X'B26E55DCB03EB1243DAC0299987FE6D5582E452237464F674896745B4D549E9A');
INSERT INTO "messages" VALUES(8589934593,2,1,NULL,'user','"The build is green."',1794744000000000,1794748598202867,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,19,19,X'C3434D4A6E7E1C0D3DC4B1789AEC672A',X'57F9276711869F628CEDA39542DC2E67E570F8166515B6F3E7294D1DF0B74381');
INSERT INTO "messages" VALUES(12884901889,3,1,NULL,'user','"Nobody else reads this."',1794744000000000,1794748598203580,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,23,23,X'A03191E1FC6B4AAB4D07C28AFA7EA03E',X'EB72EDCAA5C508945E27C0B19D0AD577102C93ABA55A633225683011A3716455');
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
INSERT INTO "sessions" VALUES(1,1,'chat',0,1794748598200970,NULL,NULL,NULL,1794748598202074);
INSERT INTO "sessions" VALUES(2,1,'work',0,1794748598202867,NULL,NULL,NULL,1794748598208624);
INSERT INTO "sessions" VALUES(3,2,'chat',0,1794748598203580,NULL,NULL,NULL,1794748598208643);
CREATE TABLE supersessions (
    old_place INTEGER NOT NULL REFERENCES messages,
    new_place INTEGER NOT NULL REFERENCES messages,
    agent     INTEGER NOT NULL REFERENCES agents,
    kind      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    note      TEXT NOT NULL,
    PRIMARY KEY (old_place, new_place)
) STRICT, WITHOUT ROWID;
INSERT INTO "supersessions" VALUES(4294967297,4294967298,1,'correction',1794744000000000,'');
CREATE TABLE vector_sets (
    vector_set  INTEGER PRIMARY KEY,
    agent       INTEGER NOT NULL REFERENCES agents,
    model       TEXT NOT NULL,              -- its fingerprint
    vectors     INTEGER NOT NULL DEFAULT 0, -- how many there are
    last_number INTEGER NOT NULL,           -- given out so far; stays when all are dropped, so that none comes twice
    UNIQUE (agent, model)
) STRICT;
INSERT INTO "vector_sets" VALUES(1,1,'m',5,1099511627781);
CREATE TABLE vectors (
    number     INTEGER PRIMARY KEY, -- vector_set << 40 | 1, 2, 3, …
    vector_set INTEGER NOT NULL REFERENCES vector_sets,
    place      INTEGER NOT NULL,    -- of the message; derived, so no reference that every check would follow
    part       INTEGER NOT NULL,
    data       BLOB NOT NULL
) STRICT;
INSERT INTO "vectors" VALUES(1099511627777,1,4294967297,0,X'0102');
INSERT INTO "vectors" VALUES(1099511627778,1,4294967298,0,X'0102');
INSERT INTO "vectors" VALUES(1099511627779,1,4294967299,0,X'0102');
INSERT INTO "vectors" VALUES(1099511627780,1,4294967300,0,X'0102');
INSERT INTO "vectors" VALUES(1099511627781,1,8589934593,0,X'0102');
CREATE INDEX sessions_by_activity ON sessions (agent, touched);
CREATE UNIQUE INDEX messages_by_id ON messages (session, id) WHERE id IS NOT NULL;
CREATE INDEX marks_by_session ON marks (session, mark);
CREATE INDEX audit_by_session ON audit (agent, session, seq) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX vectors_by_place ON vectors (vector_set, place, part);
CREATE INDEX holds_by_pin ON holds (agent, pin) WHERE pin IS NOT NULL;
CREATE INDEX holds_by_retrieval ON holds (agent, retrieved_at) WHERE retrieved_at IS NOT NULL;
CREATE INDEX supersessions_by_new ON supersessions (new_place);
CREATE INDEX agent_notes_by_value ON agent_notes (name, value);
COMMIT;
