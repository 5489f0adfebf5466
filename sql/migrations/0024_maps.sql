-- SPDX-License-Identifier: Apache-2.0
-- Maps: one job for each row of a query, so that each row completes once. Guide: docs/guide/map.md.

CREATE TABLE map (
    id bigint GENERATED ALWAYS AS IDENTITY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    loaded_at timestamptz, -- when the last row was loaded; NULL: rows up to last_key are
    paused_at timestamptz,
    cancelled_at timestamptz,
    rows bigint NOT NULL DEFAULT 0, -- rows loaded so far; a key that is loaded again counts once
    max_running integer, -- NULL: any number of its jobs may run at a time
    is_first boolean NOT NULL DEFAULT true, -- this is the first pass over the query: none of the keys to come was loaded before
    name text COLLATE "C" NOT NULL,
    query text NOT NULL,
    key text COLLATE "C" NOT NULL, -- the column of the query that identifies a row
    kind text COLLATE "C" NOT NULL,
    template jsonb, -- the command of worker.commands; NULL: `kind` is no command (--kind)
    queue text COLLATE "C" NOT NULL,
    rate text, -- such as "100/s"; NULL: no limit
    into_table text, -- where `claimctl map attach` puts the results; NULL: nowhere
    last_key text,
    created_by text COLLATE "C" NOT NULL,
    CONSTRAINT map_pkey PRIMARY KEY (id),
    CONSTRAINT map_name UNIQUE (name),
    CONSTRAINT map_name_form CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' AND octet_length(name) <= 64)
);

-- How many rows of a map are in map_done, by state. A table of its own, since map_load() keeps the row in `map` locked.
CREATE TABLE map_count (
    map_id bigint NOT NULL,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    ended_before bigint NOT NULL DEFAULT 0, -- the sum of these three when the leader last made jobs due
    CONSTRAINT map_count_pkey PRIMARY KEY (map_id),
    CONSTRAINT map_count_map FOREIGN KEY (map_id) REFERENCES map ON DELETE CASCADE
) WITH (fillfactor = 50);

-- How each row of a map ended. Entries outlive the jobs in the history. Only the leading scheduler adds and changes them.
CREATE TABLE map_done (
    map_id bigint NOT NULL,
    n bigint NOT NULL, -- map_ended.n
    job_id bigint, -- NULL: no job could be made of the row
    ended_at timestamptz NOT NULL,
    attempts integer NOT NULL,
    key text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    result jsonb,
    error text,
    CONSTRAINT map_done_pkey PRIMARY KEY (map_id, key),
    CONSTRAINT map_done_state CHECK (state IN ('completed', 'discarded', 'cancelled'))
);

CREATE INDEX map_done_failed ON map_done (map_id, key) WHERE state <> 'completed';

-- Ends of rows that the leader has not yet moved to map_done.
CREATE TABLE map_ended (
    n bigint GENERATED ALWAYS AS IDENTITY, -- of two entries of a row, the higher one is the later
    job_id bigint,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts integer NOT NULL DEFAULT 0,
    unique_key text COLLATE "C" NOT NULL, -- map:NAME:KEY
    state text COLLATE "C", -- NULL: the row has an open job again
    result jsonb,
    error text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX map_ended_key ON map_ended (unique_key);

-- Index of `running`: job_feed.
CREATE VIEW maps AS
SELECT m.id, m.name,
       CASE WHEN m.cancelled_at IS NOT NULL THEN 'cancelled'
            WHEN m.paused_at IS NOT NULL THEN 'paused'
            WHEN m.loaded_at IS NULL THEN 'loading'
            WHEN m.rows = c.completed + c.failed + c.cancelled
                 AND NOT EXISTS (SELECT FROM job_key k JOIN job j ON j.id = k.job_id
                                  WHERE k.key > 'map:' || m.name || ':' AND k.key < 'map:' || m.name || ';')
                 AND NOT EXISTS (SELECT FROM map_ended e WHERE starts_with(e.unique_key, 'map:' || m.name || ':')) THEN 'done'
            ELSE 'running' END AS state,
       m.rows, m.rows - c.completed - c.failed - c.cancelled AS open,
       (SELECT count(*) FROM job j
         WHERE j.queue = m.queue AND j.priority = 4 AND j.share = share_of('map:' || m.name) AND j.ready_at < job_waits()
           AND j.state = 'running' AND j.share_key = 'map:' || m.name) AS running,
       c.completed, c.failed, c.cancelled, m.max_running, m.rate, m.query, m.key, m.kind, m.template, m.queue, m.into_table, m.last_key,
       m.created_at, m.created_by, m.loaded_at, m.paused_at, m.cancelled_at
  FROM map m
  JOIN map_count c ON c.map_id = m.id;

GRANT SELECT ON map, map_count, map_done, map_ended, maps TO claimd_admin, claimd_reader;

-- The worker's setting worker.commands: templates by name.
ALTER TABLE worker ADD COLUMN commands jsonb NOT NULL DEFAULT '{}';

-- Allows 0 places, for the key of a paused map.
ALTER TABLE key_limit DROP CONSTRAINT key_limit_range, ADD CONSTRAINT key_limit_range CHECK (max_running BETWEEN 0 AND 1000);

-- Fires for jobs with one of the flags 8 (batch), 16 (other jobs wait for it) and 8192 (map).
DROP TRIGGER job_in_history ON job_history;
CREATE TRIGGER job_in_history AFTER INSERT ON job_history FOR EACH ROW WHEN (NEW.flags & 8216 <> 0) EXECUTE FUNCTION job_in_history();

-- ---- down ----
-- Makes the waiting jobs of maps due, since nothing else will.
UPDATE job SET scheduled_at = clock_timestamp() WHERE flags & 8192 <> 0 AND state = 'available' AND scheduled_at = job_waits();
DROP TRIGGER job_in_history ON job_history;
CREATE TRIGGER job_in_history AFTER INSERT ON job_history FOR EACH ROW WHEN (NEW.flags & 24 <> 0) EXECUTE FUNCTION job_in_history();
DELETE FROM key_limit WHERE max_running = 0;
ALTER TABLE key_limit DROP CONSTRAINT key_limit_range, ADD CONSTRAINT key_limit_range CHECK (max_running BETWEEN 1 AND 1000);
ALTER TABLE worker DROP COLUMN commands;
DROP VIEW maps;
DROP TABLE map_ended, map_done, map_count, map;
