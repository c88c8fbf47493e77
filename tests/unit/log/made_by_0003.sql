-- A store as schema version 3 left it, with some of all that recall and compression keep, dumped with sqlite3's iterdump.
-- Never change it.
PRAGMA application_id = 16756748;
PRAGMA user_version = 3;
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
INSERT INTO "agents" VALUES(1,'main','{"messages":6,"chars":98,"sessions":2,"noise":0,"duplicates":0,"conflicts":0,"redactions":0,"blobs":0,"auditEvents":13}',13,'d049c0242850c000b109be09b917be2d551f24820c13a88b8fd7445a61f32ff0');
INSERT INTO "agents" VALUES(2,'other','{"messages":1,"chars":23,"sessions":1,"noise":0,"duplicates":0,"conflicts":0,"redactions":0,"blobs":0,"auditEvents":1}',1,'5b74c86cfd9abf3503796d8511fe82262795c1b4c6549a1c7051ee0dbefebe35');
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
INSERT INTO "audit" VALUES(1,1,1794760018561806,'onMessage','test','chat','{"accepted":4,"chars":61,"firstSeq":1,"hash":"56ce26e750d568e005dae712a28c2556d3db6be5129af2a760f6b408ff83595d","lastSeq":4,"opened":1}','0000000000000000000000000000000000000000000000000000000000000000','035e007c24ffea0682a60d43940351145aa1f963dc2e8bbeb1d76ef42df6a8dc');
INSERT INTO "audit" VALUES(1,2,1794760018563423,'onMessage','test','work','{"accepted":2,"chars":37,"firstSeq":1,"hash":"9aefa3e24950fc0deabf11f6e8acff3dec647d3878eef8ccab6147b3d2a26478","lastSeq":2,"opened":1}','035e007c24ffea0682a60d43940351145aa1f963dc2e8bbeb1d76ef42df6a8dc','e425740f08ba25fa55b677e46c40564ffd7b7a9afa6bd9677c119e22d2fbbee4');
INSERT INTO "audit" VALUES(1,3,1794760018568951,'recall','test',NULL,'{}','e425740f08ba25fa55b677e46c40564ffd7b7a9afa6bd9677c119e22d2fbbee4','2475aabe05620f28b3913a19cbfd5eacb8a3ff983108bcfe93abea33028b4951');
INSERT INTO "audit" VALUES(1,4,1794760018569918,'pin','test',NULL,'{"changed":1}','2475aabe05620f28b3913a19cbfd5eacb8a3ff983108bcfe93abea33028b4951','56f5aa12a71f962689557f259cfe8c4bc5de5d4b1715bd1176b69920f6178f67');
INSERT INTO "audit" VALUES(1,5,1794760018570596,'supersede','test',NULL,'{}','56f5aa12a71f962689557f259cfe8c4bc5de5d4b1715bd1176b69920f6178f67','06912539adb76114c1b406be63f67ba18b078196469af9cdd92e59a37d258097');
INSERT INTO "audit" VALUES(1,6,1794760018571053,'cross','test',NULL,'{}','06912539adb76114c1b406be63f67ba18b078196469af9cdd92e59a37d258097','10e337a58a4fccbb3a035a54b14dcfb6f0e905332b0e79cac70e7fe66b025170');
INSERT INTO "audit" VALUES(1,7,1794760018571735,'summarize','test',NULL,'{"id":"L1-0001"}','10e337a58a4fccbb3a035a54b14dcfb6f0e905332b0e79cac70e7fe66b025170','0c2b81a877cbaedf6af496188bdd649c27145cbe2cc3574e54162fc840c606ca');
INSERT INTO "audit" VALUES(1,8,1794760018572617,'summarize','test',NULL,'{"id":"L1-0002"}','0c2b81a877cbaedf6af496188bdd649c27145cbe2cc3574e54162fc840c606ca','28e6caf6c4c551ea9831668896c1197a48f71b73a8e7ad9741a7c227220314bd');
INSERT INTO "audit" VALUES(1,9,1794760018573340,'summarize','test',NULL,'{"id":"L1-0003"}','28e6caf6c4c551ea9831668896c1197a48f71b73a8e7ad9741a7c227220314bd','a9de4741ea42f2ef40071363bed7d9f2b397cb10bcbb22e44b986a3e819f1703');
INSERT INTO "audit" VALUES(1,10,1794760018578057,'summarize','test',NULL,'{"id":"L2-0001"}','a9de4741ea42f2ef40071363bed7d9f2b397cb10bcbb22e44b986a3e819f1703','567664ca0ceb3e0701c68aef2b0ef4ee8ebbbdfe6e499e8f9f3c1873fe7c5717');
INSERT INTO "audit" VALUES(1,11,1794760018581966,'summarize','test',NULL,'{"id":"L1-0004"}','567664ca0ceb3e0701c68aef2b0ef4ee8ebbbdfe6e499e8f9f3c1873fe7c5717','0acefeef4d179fefba973e601bac7f88476362d3a4f7f41d871bc064874d5ef7');
INSERT INTO "audit" VALUES(1,12,1794760018587358,'swap','test','chat','{"generation":1}','0acefeef4d179fefba973e601bac7f88476362d3a4f7f41d871bc064874d5ef7','141a012d43b4b75c662daedff5301007ebfe1208276dc146b0ee37c2af40e40e');
INSERT INTO "audit" VALUES(1,13,1794760018588099,'swap','test','chat','{"generation":2}','141a012d43b4b75c662daedff5301007ebfe1208276dc146b0ee37c2af40e40e','d049c0242850c000b109be09b917be2d551f24820c13a88b8fd7445a61f32ff0');
INSERT INTO "audit" VALUES(2,1,1794760018564082,'onMessage','test','chat','{"accepted":1,"chars":23,"firstSeq":1,"hash":"7433f8abfcc3f430bcb6f028b6b91aa79408748b644436a04d0b563a85a95277","lastSeq":1,"opened":1}','0000000000000000000000000000000000000000000000000000000000000000','5b74c86cfd9abf3503796d8511fe82262795c1b4c6549a1c7051ee0dbefebe35');
CREATE TABLE captures (
    agent     INTEGER NOT NULL REFERENCES agents,
    client    TEXT NOT NULL,
    sent      INTEGER NOT NULL,
    through   INTEGER NOT NULL, -- highest ordinal that arrived
    received  INTEGER NOT NULL, -- how many ordinals arrived
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (agent, client)
) STRICT, WITHOUT ROWID;
CREATE TABLE completions (
    completion  INTEGER PRIMARY KEY,
    agent       INTEGER NOT NULL REFERENCES agents,
    fingerprint TEXT NOT NULL,
    at          INTEGER NOT NULL,
    answer      TEXT NOT NULL -- JSON: the text, who wrote it, what it cost
) STRICT;
INSERT INTO "completions" VALUES(1,1,'f1',1794744000000000,'{"fingerprint":"f1","summarizer":"openai:a-model","text":"an answer","usage":{"inputTokens":100,"cachedTokens":60,"outputTokens":10,"dollars":0.25}}');
CREATE TABLE contexts (
    context    INTEGER PRIMARY KEY, -- in the order they were handed out, whatever the clock says
    session    INTEGER NOT NULL REFERENCES sessions,
    generation INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    payload    BLOB NOT NULL        -- JSON, compressed by zlib
) STRICT;
INSERT INTO "contexts" VALUES(1,1,1,1794744060000000,X'7801358F4D8EC2300C85AF82BC0E5252C14864873802959066340B434DA92049895D0A42DC1D879F9DEDF73D3FFB0EC72E36E08147ECC1404B91324A972278670045A5CA563F53E7A66E5EBBCA5BE7ADFD55F4842C6B3ABFB881A9A9D39122835F586B6097A2D05536BA3C8D8AD8329417B1DC0BE5821908785D1D30AB6956F44021E59B268E0794090BDE58730231634B0AFDFD1BE831CBA73C51D3964D77B850DEEAD1E18DF01002E6EEEB6872EA7BD21F8BFDD3ACD210F535CDD414A1A23D1E4F58CE5584');
INSERT INTO "contexts" VALUES(2,1,2,1794744120000000,X'7801358FD16AC3300C457F65E8D9053BAC85FAADE4135618ACEC416DD42424B6334B595A4AFFBD72D7811F64DD7375A51B0C7D6CC0032F388181962265943E45F0950114952A5B6D56CEADDC7AEF2A6FF5D92F454764F9A01FF0CEC0CCD4ECD34091C16FAD35704A51E8229F3A3C2D8AD8D29427B13B0BE582190878A93BCC6A7A2F7AA090F25513970EE58D05AFAC398198B125850EDF0626CCF22A476ADA32E906BF948FBA74F843780E0173FFEF68729A26D21B8BFDF5A9D31CF534CDD414A1A2DDEF0F5A975586');
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
INSERT INTO "holds" VALUES(4294967297,1,1,1794760018568951,NULL);
INSERT INTO "holds" VALUES(4294967298,1,1,1794760018568951,1);
CREATE TABLE installation (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
INSERT INTO "installation" VALUES('key',X'82A6D6A864FB7C09DAA31D220BE4FC2C7F94603FE88632FE5BBD89F227FC19C5');
INSERT INTO "installation" VALUES('id',X'34626537613835393138663233363964');
CREATE TABLE marks (
    mark    INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions,
    seq     INTEGER NOT NULL, -- it happened after this message
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    reason  TEXT
) STRICT;
INSERT INTO "marks" VALUES(1,1,0,1794760018561806,'first',NULL);
INSERT INTO "marks" VALUES(2,2,0,1794760018563423,'first',NULL);
INSERT INTO "marks" VALUES(3,3,0,1794760018564082,'first',NULL);
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
INSERT INTO "messages" VALUES(4294967297,1,1,NULL,'user','"The ferry to Calais leaves at 9:15."',1794760018561806,1794760018561806,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,35,35,X'2FE6F4A6FFDBC32EE85283F8C02D9998',X'DDFF5DE3D8FBE4685B8C1528507E0EFF1407264AF48833AD4379A2732748FDE2');
INSERT INTO "messages" VALUES(4294967298,1,2,NULL,'user','"No, at 9:45."',1794760018561806,1794760018561806,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,12,47,X'E1C93018BE2B14650789BB874D07F3C1',X'8975BC17EA00C5DD68CCEAB98DA4A61CE9BBC8EB60F9BD86C4016A4E4082BE05');
INSERT INTO "messages" VALUES(4294967299,1,3,NULL,'user','"你好 👋"',1794760018561806,1794760018561806,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,4,51,X'FBF5A25549C1872DA1C3C7C7776507A6',X'01566EA04270B963188EBB983685F18536BE428036EACB80B6EE960310A5D7F7');
INSERT INTO "messages" VALUES(4294967300,1,4,NULL,'user','"Thank you!"',1794760018561806,1794760018561806,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,10,61,X'93758CB917E7863446B95CF8A049148C',X'E7E1EA3D7F597D5387BBFD4BC4A7D86BD052181D8619355B4DD147FB60A94F1C');
INSERT INTO "messages" VALUES(8589934593,2,1,NULL,'user','"The build is green."',1794760018563423,1794760018563423,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,19,19,X'C3434D4A6E7E1C0D3DC4B1789AEC672A',X'18BD047D959D46B50D810EF79BB946E29A8389CB95AF090E6C09D704B25918D1');
INSERT INTO "messages" VALUES(8589934594,2,2,NULL,'user','"Ship it on Friday."',1794760018563423,1794760018563423,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,18,37,X'BCAA98E1C08C112D7E47296BB010CF5F',X'0B1F224F401D02A5E65FBB027AB90EC86673992022089EEC27CB551F1E0D959D');
INSERT INTO "messages" VALUES(12884901889,3,1,NULL,'user','"Nobody else reads this."',1794760018564082,1794760018564082,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,23,23,X'A03191E1FC6B4AAB4D07C28AFA7EA03E',X'36D208A1D564A130A993523EDCB9135821559D66A19D65381029F9AE48026332');
CREATE TABLE session_notes (
    session INTEGER NOT NULL REFERENCES sessions,
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "session_notes" VALUES(1,'state','value');
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
INSERT INTO "sessions" VALUES(1,1,'chat',2,1794760018561806,NULL,NULL,NULL,1794760018562733);
INSERT INTO "sessions" VALUES(2,1,'work',0,1794760018563423,NULL,NULL,NULL,1794760018598286);
INSERT INTO "sessions" VALUES(3,2,'chat',0,1794760018564082,NULL,NULL,NULL,1794760018598357);
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
INSERT INTO "spending" VALUES('2026-11-15',1,'openai:a-model',1,100,60,10,0.25);
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
INSERT INTO "summaries" VALUES(1,1,1,1,1,1,1,1794744060000000,1794744060000000,38,40,1794760018571735,4,'harbour trip');
INSERT INTO "summaries" VALUES(2,1,1,2,1,2,2,1794744120000000,1794744120000000,38,40,1794760018572617,4,'harbour trip');
INSERT INTO "summaries" VALUES(3,1,1,3,1,3,3,1794744180000000,1794744180000000,38,40,1794760018573340,NULL,'harbour trip');
INSERT INTO "summaries" VALUES(4,1,2,1,1,1,2,1794744060000000,1794744120000000,38,40,1794760018578057,NULL,'harbour trip');
INSERT INTO "summaries" VALUES(5,1,1,4,2,1,2,1794744060000000,1794744120000000,38,40,1794760018581966,NULL,'harbour trip');
CREATE TABLE summary_spans (
    session   INTEGER NOT NULL REFERENCES sessions,
    level     INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    summary   INTEGER NOT NULL REFERENCES summaries,
    PRIMARY KEY (session, level, last_seq)
) STRICT, WITHOUT ROWID;
INSERT INTO "summary_spans" VALUES(1,1,1,1,1);
INSERT INTO "summary_spans" VALUES(1,1,2,2,2);
INSERT INTO "summary_spans" VALUES(1,1,3,3,3);
INSERT INTO "summary_spans" VALUES(1,2,2,1,4);
INSERT INTO "summary_spans" VALUES(2,1,2,1,5);
CREATE TABLE summary_texts (
    summary INTEGER PRIMARY KEY REFERENCES summaries,
    draft   TEXT NOT NULL -- JSON of the whole draft
) STRICT;
INSERT INTO "summary_texts" VALUES(1,'{"level":1,"spans":[{"sessionId":"chat","firstSeq":1,"lastSeq":1}],"text":"They moved the harbour trip to Friday.","rank":[0],"brief":"harbour trip","sourceMessages":1,"sourceTokens":400,"tokens":40,"firstAt":"2026-11-15T12:01:00Z","lastAt":"2026-11-15T12:01:00Z","summarizer":"extractive","promptVersion":"1","fingerprint":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","usage":{"inputTokens":0,"cachedTokens":0,"outputTokens":0,"dollars":0.0},"sources":[],"kept":[],"losses":[],"lost":0}');
INSERT INTO "summary_texts" VALUES(2,'{"level":1,"spans":[{"sessionId":"chat","firstSeq":2,"lastSeq":2}],"text":"They moved the harbour trip to Friday.","rank":[0],"brief":"harbour trip","sourceMessages":1,"sourceTokens":400,"tokens":40,"firstAt":"2026-11-15T12:02:00Z","lastAt":"2026-11-15T12:02:00Z","summarizer":"extractive","promptVersion":"1","fingerprint":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","usage":{"inputTokens":0,"cachedTokens":0,"outputTokens":0,"dollars":0.0},"sources":[],"kept":[],"losses":[],"lost":0}');
INSERT INTO "summary_texts" VALUES(3,'{"level":1,"spans":[{"sessionId":"chat","firstSeq":3,"lastSeq":3}],"text":"They moved the harbour trip to Friday.","rank":[0],"brief":"harbour trip","sourceMessages":1,"sourceTokens":400,"tokens":40,"firstAt":"2026-11-15T12:03:00Z","lastAt":"2026-11-15T12:03:00Z","summarizer":"extractive","promptVersion":"1","fingerprint":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","usage":{"inputTokens":0,"cachedTokens":0,"outputTokens":0,"dollars":0.0},"sources":[],"kept":[],"losses":[],"lost":0}');
INSERT INTO "summary_texts" VALUES(4,'{"level":2,"spans":[{"sessionId":"chat","firstSeq":1,"lastSeq":2}],"text":"They moved the harbour trip to Friday.","rank":[0],"brief":"harbour trip","sourceMessages":2,"sourceTokens":400,"tokens":40,"firstAt":"2026-11-15T12:01:00Z","lastAt":"2026-11-15T12:02:00Z","summarizer":"extractive","promptVersion":"1","fingerprint":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","usage":{"inputTokens":0,"cachedTokens":0,"outputTokens":0,"dollars":0.0},"sources":["L1-0001","L1-0002"],"kept":[],"losses":[],"lost":0}');
INSERT INTO "summary_texts" VALUES(5,'{"level":1,"spans":[{"sessionId":"work","firstSeq":1,"lastSeq":2}],"text":"They moved the harbour trip to Friday.","rank":[0],"brief":"harbour trip","sourceMessages":2,"sourceTokens":400,"tokens":40,"firstAt":"2026-11-15T12:01:00Z","lastAt":"2026-11-15T12:02:00Z","summarizer":"extractive","promptVersion":"1","fingerprint":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","usage":{"inputTokens":0,"cachedTokens":0,"outputTokens":0,"dollars":0.0},"sources":[],"kept":[],"losses":[],"lost":0}');
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
INSERT INTO "vector_sets" VALUES(1,1,'m',6,1099511627782);
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
INSERT INTO "vectors" VALUES(1099511627782,1,8589934594,0,X'0102');
CREATE INDEX sessions_by_activity ON sessions (agent, touched);
CREATE UNIQUE INDEX messages_by_id ON messages (session, id) WHERE id IS NOT NULL;
CREATE INDEX marks_by_session ON marks (session, mark);
CREATE INDEX audit_by_session ON audit (agent, session, seq) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX vectors_by_place ON vectors (vector_set, place, part);
CREATE INDEX holds_by_pin ON holds (agent, pin) WHERE pin IS NOT NULL;
CREATE INDEX holds_by_retrieval ON holds (agent, retrieved_at) WHERE retrieved_at IS NOT NULL;
CREATE INDEX supersessions_by_new ON supersessions (new_place);
CREATE INDEX agent_notes_by_value ON agent_notes (name, value);
CREATE UNIQUE INDEX summaries_by_number ON summaries (agent, level, number);
CREATE INDEX summaries_by_making ON summaries (agent, level, summary);
CREATE UNIQUE INDEX summaries_by_end ON summaries (session, level, last_seq) WHERE session IS NOT NULL;
CREATE INDEX summaries_unmerged ON summaries (agent, level, first_at) WHERE parent IS NULL;
CREATE INDEX summaries_unmerged_of_session ON summaries (session, level, first_seq)
    WHERE parent IS NULL AND session IS NOT NULL;
CREATE INDEX summary_spans_by_making ON summary_spans (session, level, summary);
CREATE UNIQUE INDEX completions_by_fingerprint ON completions (agent, fingerprint);
CREATE INDEX spending_by_agent ON spending (agent);
CREATE INDEX contexts_by_session ON contexts (session, context, at);
CREATE INDEX sessions_by_making ON sessions (agent, session);
CREATE INDEX audit_by_verb ON audit (agent, session, verb, seq, at) WHERE session IS NOT NULL AND verb <> 'onMessage';
CREATE INDEX holds_pinned ON holds (place, pin) WHERE pin IS NOT NULL;
COMMIT;
