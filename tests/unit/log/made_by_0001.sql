-- A store as Offbook 0.1.0 left it (schema version 1), dumped with sqlite3's iterdump. Never change it.
PRAGMA application_id = 16756748;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE agents (
    agent      INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    counts     TEXT NOT NULL DEFAULT '{}', -- through the event noted next
    noted_seq  INTEGER NOT NULL DEFAULT 0,
    noted_hash TEXT NOT NULL
) STRICT;
INSERT INTO "agents" VALUES(1,'main','{"messages":4,"chars":78,"sessions":2,"noise":0,"duplicates":1,"conflicts":0,"redactions":0,"blobs":0,"auditEvents":5}',5,'34766bb022a9f5a00e88482c5be4056a2305026d15c69c77861dc6454ae066df');
INSERT INTO "agents" VALUES(2,'other','{"messages":1,"chars":27,"sessions":1,"noise":0,"duplicates":0,"conflicts":0,"redactions":0,"blobs":0,"auditEvents":1}',1,'da22dd768175e2b528818b78336eaeeb0644ddb2003995c77040334ae5f12476');
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
INSERT INTO "audit" VALUES(1,1,1794737315818208,'onMessage','local','chat','{"accepted":2,"chars":56,"firstSeq":1,"hash":"d817a572beb80dffb3667257ab19bd83ddd5e812c7d5f2f06ca0d1d6e8543dc6","lastSeq":2,"opened":1}','0000000000000000000000000000000000000000000000000000000000000000','2613ea56993fa0b6df50c27e723d41a7ec35fc4b0fa15e059d78ea627fe17e47');
INSERT INTO "audit" VALUES(1,2,1794737315825584,'onMessage','local','work','{"accepted":1,"chars":4,"firstSeq":1,"hash":"22b443ea18ae28d7320a37d8a7fbe86a43c3d455d428fba9777e589e6ab49889","lastSeq":1,"opened":1}','2613ea56993fa0b6df50c27e723d41a7ec35fc4b0fa15e059d78ea627fe17e47','fc43b0887f70a82d56068c0b465a0685b00867914b2d7c726a4823d03fcb0704');
INSERT INTO "audit" VALUES(1,3,1794737315829518,'status','local',NULL,'{}','fc43b0887f70a82d56068c0b465a0685b00867914b2d7c726a4823d03fcb0704','24b51d65ef5d4322c340e7fd080afc97876c9fad5f76d08150b09d02a8a7c720');
INSERT INTO "audit" VALUES(1,4,1794737315833503,'onMessage','local','chat','{"accepted":1,"chars":18,"duplicates":1,"firstSeq":3,"hash":"9ec97e5cc0bd16163fdb4ba2f6eaf89289637331e2e5d3c1e586ff8ebe219368","lastSeq":3}','24b51d65ef5d4322c340e7fd080afc97876c9fad5f76d08150b09d02a8a7c720','ef2b51159cf21dbb504a9f6c28853a03d470ad9a43fb84fc138ddd4c2dfa448b');
INSERT INTO "audit" VALUES(1,5,1794737315837540,'hooks/session-end','local','chat','{}','ef2b51159cf21dbb504a9f6c28853a03d470ad9a43fb84fc138ddd4c2dfa448b','34766bb022a9f5a00e88482c5be4056a2305026d15c69c77861dc6454ae066df');
INSERT INTO "audit" VALUES(2,1,1794737315821801,'onMessage','local','chat','{"accepted":1,"chars":27,"firstSeq":1,"hash":"0b68af25a3785bed32f62eb0e257371dee5f3f200aac914564584327bd5c85ca","lastSeq":1,"opened":1}','0000000000000000000000000000000000000000000000000000000000000000','da22dd768175e2b528818b78336eaeeb0644ddb2003995c77040334ae5f12476');
CREATE TABLE captures (
    agent     INTEGER NOT NULL REFERENCES agents,
    client    TEXT NOT NULL,
    sent      INTEGER NOT NULL,
    through   INTEGER NOT NULL, -- highest ordinal that arrived
    received  INTEGER NOT NULL, -- how many ordinals arrived
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (agent, client)
) STRICT, WITHOUT ROWID;
INSERT INTO "captures" VALUES(1,'laptop',2,2,2,1794737315818208);
CREATE TABLE installation (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
INSERT INTO "installation" VALUES('key',X'93C1A90D3A9CC1F8A2449323EDD47A3D2AD29BFA3F49D564418E50E7A90BF6EF');
INSERT INTO "installation" VALUES('id',X'34666338623834383063346362643037');
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
INSERT INTO "marks" VALUES(3,3,0,1794744060000000,'first',NULL);
INSERT INTO "marks" VALUES(4,1,2,1794754800000000,'interrupted',NULL);
INSERT INTO "marks" VALUES(5,1,3,1794758400000000,'end','reset');
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
INSERT INTO "messages" VALUES(4294967297,1,1,'m1','user','"What is the tide table for Dover?"',1794744000000000,1794737315818208,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,33,33,X'1C5E088D747CB5AF30AEF1643D71091E',X'5143CB300A455874BD0F0FF7D63716EB68849047592FE80630EA03A119DBEF94');
INSERT INTO "messages" VALUES(4294967298,1,2,'m2','assistant','"High water is at 14:20."',1794744003000000,1794737315818208,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,23,56,X'F053AAC186E4A85205F1CF06C4CCE1D9',X'B041DF855A90AD83629EA7768BAF7C2CEECF77A4A8C16B872B4C8A4682A2C2CF');
INSERT INTO "messages" VALUES(4294967299,1,3,NULL,'user','"And the day after?"',1794754800000000,1794737315833503,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,18,74,X'AF283A8260E8F2862DB02BB4E010B417',X'0048286BDF73CEE0CB1153905DE3FADB7E2BD3B1B7EB58346DCF004D1FF72397');
INSERT INTO "messages" VALUES(8589934593,2,1,'m1','user','"A secret of the other agent"',1794744000000000,1794737315821801,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,27,27,X'9E043118351A28FFE2BD8DCE2E44D88E',X'C9AD9B321B676A02467D1757B52F9B315125D1B757573F8455D8C53660EB5550');
INSERT INTO "messages" VALUES(12884901889,3,1,'w1','user','"你好 👋"',1794744060000000,1794737315825584,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,4,4,X'FBF5A25549C1872DA1C3C7C7776507A6',X'03D288DE29631A2D4C49B9DE2B1F2AD81C1E340B64CA25155F4B1BD36EEF7551');
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
INSERT INTO "sessions" VALUES(1,1,'chat',0,1794737315818208,1794758400000000,'reset',3,1794737315841924);
INSERT INTO "sessions" VALUES(2,2,'chat',0,1794737315821801,NULL,NULL,NULL,1794737315841905);
INSERT INTO "sessions" VALUES(3,1,'work',0,1794737315825584,NULL,NULL,NULL,1794737315841918);
CREATE INDEX sessions_by_activity ON sessions (agent, touched);
CREATE UNIQUE INDEX messages_by_id ON messages (session, id) WHERE id IS NOT NULL;
CREATE INDEX marks_by_session ON marks (session, mark);
CREATE INDEX audit_by_session ON audit (agent, session, seq) WHERE session IS NOT NULL;
COMMIT;
