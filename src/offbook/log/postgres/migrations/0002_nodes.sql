-- Several nodes over one database: who is there, and which of them has which agents.

CREATE SEQUENCE node_numbers;

-- A node that runs. `number` is new with every start, and whenever it was taken for dead: whatever is held under a number
-- that is not here any more may be taken. Renewed every second or two, by a connection that does nothing else.
CREATE TABLE nodes (
    number     BIGINT PRIMARY KEY DEFAULT nextval('offbook.node_numbers'),
    node       TEXT NOT NULL UNIQUE,        -- of its data folder
    holder     TEXT NOT NULL,               -- in words
    url        TEXT NOT NULL,
    version    TEXT NOT NULL,
    until      TIMESTAMPTZ NOT NULL,
    started_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- Agents fall into these by a hash of their name. `owner` is a node's number, 0 nobody's; `epoch` rises each time it
-- changes hands. It is held as long as its node is: renewing 1,024 rows would say no more than renewing that one.
CREATE TABLE buckets (
    bucket BIGINT PRIMARY KEY,
    owner  BIGINT NOT NULL DEFAULT 0,
    epoch  BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO buckets (bucket) SELECT generate_series(0, 1023);

-- How many transactions a node has written: a commit whose answer was lost is looked up here. Stays when the node is
-- taken for dead, since the node may still ask.
CREATE TABLE node_writes (
    number BIGINT PRIMARY KEY,
    writes BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

-- The numbers of rows. One writer alone counts on from the largest, as SQLite does; several take them from a sequence,
-- which keeps none of them waiting for another. The writer of a node says which (`offbook.nodes`).
DO $do$
DECLARE
    numbered RECORD;
BEGIN
    FOR numbered IN
        SELECT table_name AS name, column_name AS key FROM information_schema.columns
        WHERE table_schema = 'offbook' AND column_default LIKE '%next\_' || table_name || '()'
    LOOP
        EXECUTE format('CREATE SEQUENCE IF NOT EXISTS offbook.%I', numbered.name || '_numbers');
        EXECUTE format(
            $f$CREATE OR REPLACE FUNCTION offbook.%I() RETURNS BIGINT LANGUAGE plpgsql AS $$ BEGIN
                IF current_setting('offbook.nodes', true) = 'on' THEN RETURN nextval('offbook.%I'); END IF;
                RETURN (SELECT coalesce(max(%I), 0) + 1 FROM offbook.%I);
            END $$$f$,
            'next_' || numbered.name, numbered.name || '_numbers', numbered.key, numbered.name
        );
    END LOOP;
END $do$;

-- Has the sequences go on from the largest numbers there are: when several nodes begin to write.
CREATE FUNCTION number_by_sequence() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    numbered RECORD;
BEGIN
    FOR numbered IN
        SELECT table_name AS name, column_name AS key FROM information_schema.columns
        WHERE table_schema = 'offbook' AND column_default LIKE '%next\_' || table_name || '()'
    LOOP
        EXECUTE format('SELECT setval(%L, coalesce(max(%I), 0) + 1, false) FROM offbook.%I',
                       'offbook.' || numbered.name || '_numbers', numbered.key, numbered.name);
    END LOOP;
END $$;
