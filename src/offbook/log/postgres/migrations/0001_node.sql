-- What only PostgreSQL needs, after the tables that every store has.

-- SQLite's table of the values in a JSON list. A NUL and a 01 in one of them are written as the dialect writes them.
CREATE FUNCTION json_each(document TEXT) RETURNS TABLE (value TEXT) LANGUAGE sql IMMUTABLE AS $$
    SELECT json_array_elements_text(
        (CASE WHEN strpos(document, '\u000') = 0 THEN document
         ELSE regexp_replace(
            regexp_replace(document, '(?<!\\)((?:\\\\)*)\\u0001', '\1\\u0001\\u0002', 'g'),
            '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u0001\\u0001', 'g') END)::json
    )
$$;

-- Who may write, and until when, by the clock of the database. Every transaction that writes holds this row, so one that
-- was overtaken writes nothing more. `writes` counts them, so that the outcome of a commit whose answer was lost is known.
CREATE TABLE lease (
    lease  TEXT PRIMARY KEY,
    holder TEXT NOT NULL DEFAULT '',        -- in words
    node   TEXT NOT NULL DEFAULT '',
    epoch  BIGINT NOT NULL DEFAULT 0,
    writes BIGINT NOT NULL DEFAULT 0,
    until  TIMESTAMPTZ NOT NULL DEFAULT to_timestamp(0)
) WITH (fillfactor = 10);                   -- changed with every commit, within its page
INSERT INTO lease (lease) VALUES ('store');
