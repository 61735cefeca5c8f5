-- Half of each page is left free, and no index holds what changes, so that updates stay within their page.
CREATE {unlogged}TABLE IF NOT EXISTS {table} (
    key text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    content bytea NOT NULL,
    -- After this time the row may be deleted.
    forget timestamptz NOT NULL
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);

-- Writes all rows, if each has the version that is expected (none, if that is null), or else nothing. If they are `apart`, each
-- row is written or not by itself. Answers the time; and, unless all are written, the version and the content of each row as it
-- is, without the content if it was written.
CREATE OR REPLACE FUNCTION {function}(
    keys text[], expected bigint[], versions bigint[], contents bytea[], keep bigint[], apart boolean
) RETURNS bytea[] LANGUAGE plpgsql AS $swap$
DECLARE
    moment timestamptz := clock_timestamp();
    -- The keys of the rows that are written.
    written text[] := '{}';
    inserted text[] := '{}';
    ok boolean;
    pages integer;
    size bigint;
BEGIN
    IF apart THEN
        -- In the order of the caller, which is that of the other branch. A statement for each row is cheaper than one with
        -- joins for all: it is a single step in the index, and its plan is kept.
        FOR number IN 1 .. cardinality(keys) LOOP
            IF expected[number] IS NULL THEN
                INSERT INTO {table} (key, version, content, forget) VALUES (
                    keys[number], versions[number], contents[number], moment + keep[number] * interval '1 microsecond'
                ) ON CONFLICT DO NOTHING;
                IF FOUND THEN
                    inserted := inserted || keys[number];
                    written := written || keys[number];
                END IF;
            ELSE
                UPDATE {table} t SET version = versions[number], content = contents[number],
                    forget = moment + keep[number] * interval '1 microsecond'
                WHERE t.key = keys[number] AND t.version = expected[number];
                IF FOUND THEN
                    written := written || keys[number];
                END IF;
            END IF;
        END LOOP;
    ELSE
        -- First new rows and then the others, each in the order of keys, so that no two calls wait for each other.
        IF array_position(expected, NULL) IS NOT NULL THEN
            WITH made AS (
                INSERT INTO {table} (key, version, content, forget)
                SELECT w.key, w.version, w.content, moment + w.keep * interval '1 microsecond'
                FROM unnest(keys, expected, versions, contents, keep) AS w (key, expected, version, content, keep)
                WHERE w.expected IS NULL ORDER BY w.key COLLATE "C"
                ON CONFLICT DO NOTHING RETURNING key
            )
            SELECT coalesce(array_agg(key), '{}') INTO inserted FROM made;
        END IF;
        WITH locked AS MATERIALIZED (
            SELECT t.key, t.version FROM {table} t
            WHERE t.key = ANY (keys) AND t.key <> ALL (inserted) ORDER BY t.key FOR UPDATE
        )
        SELECT coalesce(array_agg(locked.key), '{}') INTO written
        FROM locked JOIN unnest(keys, expected) AS w (key, expected)
        ON w.key = locked.key AND w.expected = locked.version;
        ok := cardinality(written) + cardinality(inserted) = cardinality(keys);
        IF ok THEN
            UPDATE {table} t SET version = w.version, content = w.content,
                forget = moment + w.keep * interval '1 microsecond'
            FROM unnest(keys, versions, contents, keep) AS w (key, version, content, keep)
            WHERE t.key = w.key AND t.key = ANY (written);
            written := written || inserted;
        ELSE
            DELETE FROM {table} t WHERE t.key = ANY (inserted);
            written := '{}';
        END IF;
    END IF;

    -- Only new rows make the table grow. Every eighth of them deletes what has expired on one page, which has about 24 rows.
    pages := floor(cardinality(inserted) * 0.125 + random());
    IF pages > 0 THEN
        size := pg_relation_size('{table}') / current_setting('block_size')::bigint;
        DELETE FROM {table} t WHERE t.ctid = ANY (ARRAY(
            SELECT r.ctid FROM {table} r
            WHERE r.ctid = ANY (ARRAY(
                SELECT format('(%s,%s)', page, item)::tid
                FROM (SELECT floor(random() * size)::bigint FROM generate_series(1, pages)) AS p (page),
                    generate_series(1, 226) AS item
            )) AND r.forget < moment
            FOR UPDATE SKIP LOCKED
        ));
    END IF;

    moment := clock_timestamp();
    IF cardinality(written) = cardinality(keys) THEN
        RETURN ARRAY[int8send((extract(epoch FROM moment) * 1000000)::bigint)];
    END IF;
    RETURN int8send((extract(epoch FROM moment) * 1000000)::bigint) || ARRAY(
        SELECT part.value
        FROM unnest(keys) WITH ORDINALITY AS k (key, number)
        LEFT JOIN {table} t ON t.key = k.key COLLATE "C"
        CROSS JOIN LATERAL (VALUES
            (1, int8send(t.version)),
            (2, CASE WHEN k.key <> ALL (written) THEN t.content END)
        ) AS part (place, value)
        ORDER BY k.number, part.place
    );
END
$swap$;
