-- SPDX-License-Identifier: Apache-2.0
-- claimd's schema: open jobs, finished jobs by day, who works, and the roles.
-- Run in one transaction by `claimctl db migrate`, by a superuser or by a role that may create roles and schemas.

-- Roles are of the whole cluster: another database, perhaps at this moment, may make them too.
DO $$
DECLARE
    wanted text;
    -- From 16 on who made a role may grant it, and has not yet the right to act as it.
    is_member text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['claimd_admin', 'claimd_scheduler', 'claimd_worker', 'claimd_producer', 'claimd_reader'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END LOOP;
    IF NOT pg_has_role(current_user, 'claimd_scheduler', is_member) THEN
        EXECUTE format('GRANT claimd_scheduler TO %I', current_user);
    END IF;
END $$;

-- The scheduler owns the tables: it makes and drops days and vacuums `job` itself.
CREATE SCHEMA claimd AUTHORIZATION claimd_scheduler;
SET LOCAL ROLE claimd_scheduler;
SET LOCAL search_path = claimd, pg_catalog;

-- Ordered, because a fence says which of two claims is the later one: a cached range would run out of order.
CREATE SEQUENCE fence AS bigint CACHE 1;

-- Open jobs. A claim must be HOT: room on every page, no index on a column that it changes (not in a predicate either), and
-- the columns that it writes are NOT NULL of fixed width, so that no row grows.
CREATE TABLE job (
    id bigint GENERATED ALWAYS AS IDENTITY,
    fence bigint NOT NULL DEFAULT 0,
    -- Not now(): a row's times must not be older than its transaction's first write.
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    scheduled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ready_at timestamptz NOT NULL GENERATED ALWAYS AS (GREATEST(scheduled_at, created_at)) STORED,
    attempted_at timestamptz NOT NULL DEFAULT 'epoch',
    worker_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    attempt integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    generation integer NOT NULL DEFAULT 0,
    priority smallint NOT NULL DEFAULT 4,
    share smallint NOT NULL DEFAULT 0,
    state text COLLATE "C" NOT NULL DEFAULT 'available',
    queue text COLLATE "C" NOT NULL DEFAULT 'default',
    kind text COLLATE "C" NOT NULL,
    args jsonb NOT NULL DEFAULT '{}',
    max_attempts integer, -- NULL here and below: what the row in `kind` says
    timeout interval,
    tags text[],
    metadata jsonb,
    CONSTRAINT job_pkey PRIMARY KEY (id),
    CONSTRAINT job_state CHECK (state IN ('available', 'running')),
    -- A bounded regex ({0,63}) or the text form of every args would halve the rate of inserts.
    CONSTRAINT job_kind_name CHECK (kind ~ '^[a-z][a-z0-9_]*$' AND octet_length(kind) <= 64),
    CONSTRAINT job_queue_name CHECK (queue ~ '^[a-z][a-z0-9_.-]*$' AND octet_length(queue) <= 64),
    CONSTRAINT job_priority_range CHECK (priority BETWEEN 0 AND 9),
    CONSTRAINT job_share_range CHECK (share BETWEEN 0 AND 63),
    -- Up to here a hint's score is exact; and no infinities.
    CONSTRAINT job_scheduled_at_range CHECK (scheduled_at BETWEEN '0001-01-01 00:00:00+00' AND '2286-01-01 00:00:00+00'),
    CONSTRAINT job_args_size CHECK (pg_column_size(args) <= 2000 OR octet_length(args::text) <= 1048576),
    CONSTRAINT job_metadata_size CHECK (pg_column_size(metadata) <= 2000 OR octet_length(metadata::text) <= 65536),
    CONSTRAINT job_tags_size CHECK (pg_column_size(tags) <= 8192),
    CONSTRAINT job_max_attempts_range CHECK (max_attempts >= 1),
    CONSTRAINT job_timeout_range CHECK (timeout > interval '0' AND timeout <= interval '366 days')
) WITH (fillfactor = 50, vacuum_truncate = off);

CREATE INDEX job_feed ON job (queue, priority, share, ready_at, id);

-- Finished jobs, by UTC day. Days are made ahead by ensure_days() and dropped whole. There is no DEFAULT partition: with one,
-- DETACH … CONCURRENTLY is not possible.
CREATE TABLE job_history (
    id bigint NOT NULL,
    fence bigint NOT NULL,
    created_at timestamptz NOT NULL,
    scheduled_at timestamptz NOT NULL,
    ready_at timestamptz NOT NULL,
    attempted_at timestamptz NOT NULL,
    finalized_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    worker_id uuid NOT NULL,
    attempt integer NOT NULL,
    crashes integer NOT NULL,
    generation integer NOT NULL,
    priority smallint NOT NULL,
    share smallint NOT NULL,
    state text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    args jsonb NOT NULL,
    max_attempts integer,
    timeout interval,
    tags text[],
    metadata jsonb,
    result jsonb,
    error text,
    CONSTRAINT job_history_state CHECK (state IN ('completed', 'cancelled', 'discarded'))
) PARTITION BY RANGE (finalized_at);

CREATE INDEX job_history_id ON job_history (id);

-- One row per attempt that failed or was lost.
CREATE TABLE job_attempt (
    job_id bigint NOT NULL,
    fence bigint NOT NULL,
    attempt integer NOT NULL,
    generation integer NOT NULL DEFAULT 0,
    worker_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    outcome text NOT NULL,
    error text,
    log_tail text,
    CONSTRAINT job_attempt_pkey PRIMARY KEY (job_id, fence)
);
CREATE INDEX job_attempt_ended ON job_attempt USING brin (ended_at);

-- What changes while a job runs, so that the hot row does not.
CREATE TABLE job_live (
    id bigint NOT NULL,
    fence bigint NOT NULL,
    progress text,
    checkpoint jsonb,
    cancel_requested boolean NOT NULL DEFAULT false,
    CONSTRAINT job_live_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50);

-- What workers announce from their plugins.
CREATE TABLE kind (
    name text COLLATE "C" NOT NULL,
    plugin text NOT NULL DEFAULT '',
    version text NOT NULL DEFAULT '',
    max_attempts integer NOT NULL DEFAULT 25,
    max_crashes integer NOT NULL DEFAULT 3,
    timeout interval NOT NULL DEFAULT interval '30 minutes',
    at_most_once boolean NOT NULL DEFAULT false,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT kind_pkey PRIMARY KEY (name),
    CONSTRAINT kind_name CHECK (name ~ '^[a-z][a-z0-9_]*$' AND octet_length(name) <= 64),
    CONSTRAINT kind_max_attempts_range CHECK (max_attempts >= 1),
    CONSTRAINT kind_max_crashes_range CHECK (max_crashes >= 1),
    CONSTRAINT kind_timeout_range CHECK (timeout > interval '0' AND timeout <= interval '366 days')
);

-- Only queues that somebody has set something for.
CREATE TABLE queue (
    name text COLLATE "C" NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    CONSTRAINT queue_pkey PRIMARY KEY (name),
    CONSTRAINT queue_name CHECK (name ~ '^[a-z][a-z0-9_.-]*$' AND octet_length(name) <= 64)
);

-- One row per worker process.
CREATE TABLE worker (
    worker_id uuid NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    stale_at timestamptz NOT NULL,
    backend_start timestamptz NOT NULL DEFAULT 'epoch', -- with backend_pid: its session, which its successor ends
    lost_pops bigint NOT NULL DEFAULT 0, -- rises whenever it wants the feed rewound
    uncommitted_us bigint NOT NULL DEFAULT 0, -- how long the oldest end of a run had waited for its commit at this beat
    clock_ahead_us bigint NOT NULL DEFAULT 0, -- our clock against the host's
    backend_pid integer NOT NULL DEFAULT 0,
    pid integer NOT NULL,
    slots integer NOT NULL,
    running integer NOT NULL DEFAULT 0,
    uncommitted integer NOT NULL DEFAULT 0, -- ends of runs that wait for their commit
    lock_nodes integer NOT NULL DEFAULT 0, -- of its list; so many had a vote at this beat:
    lock_nodes_voting integer NOT NULL DEFAULT 0,
    dead boolean NOT NULL DEFAULT false, -- said by a scheduler; a beat on such a row is not confirmed
    stopped boolean NOT NULL DEFAULT false, -- ended cleanly
    quiet boolean NOT NULL DEFAULT false,
    host text NOT NULL,
    state_dir text NOT NULL,
    token_prefix text NOT NULL,
    version text NOT NULL,
    queues text[] NOT NULL,
    kinds text[] NOT NULL DEFAULT '{}',
    held_fences bigint[] NOT NULL DEFAULT '{}', -- held for longer than a lease
    trouble text NOT NULL DEFAULT '', -- why its ends of runs aren't committed
    CONSTRAINT worker_pkey PRIMARY KEY (worker_id)
) WITH (fillfactor = 50);

-- One row per scheduler process: what it last said of itself, at most every 2 s. For people alone: nothing is decided by it.
CREATE TABLE scheduler (
    scheduler_id uuid NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    stale_at timestamptz NOT NULL,
    leader_since timestamptz, -- NULL: a standby
    last_pass_at timestamptz, -- the last pass of the feed that ended well, while it leads
    full_pass_at timestamptz, -- the last complete full pass began, else leading did
    clock_stepped_at timestamptz, -- our clock jumped, as seen by that host …
    full_pass_us bigint NOT NULL DEFAULT 0, -- so long the last full pass took; 0: there was none
    clock_step_us bigint NOT NULL DEFAULT 0, -- … by so much, the last time
    clock_ahead_us bigint NOT NULL DEFAULT 0, -- our clock against the host's
    pid integer NOT NULL,
    lock_nodes integer NOT NULL, -- of its list; so many had a vote:
    lock_nodes_voting integer NOT NULL,
    host text NOT NULL,
    version text NOT NULL,
    last_error text NOT NULL DEFAULT '', -- that PostgreSQL gave it
    CONSTRAINT scheduler_pkey PRIMARY KEY (scheduler_id)
) WITH (fillfactor = 50);

CREATE TABLE cluster (
    only_row boolean NOT NULL DEFAULT true,
    schema_version integer NOT NULL DEFAULT 0,
    hungry boolean NOT NULL DEFAULT false, -- the leading scheduler has nothing to feed and wants a NOTIFY
    t_max_us bigint NOT NULL DEFAULT 0, -- the largest lease in use
    timeline text NOT NULL DEFAULT '', -- of the WAL, on which fences are given out
    lock_nodes text NOT NULL DEFAULT '', -- fingerprint of the list of lock nodes; '' = nobody has joined yet
    lock_nodes_before text NOT NULL DEFAULT '', -- the former list, while it is being changed: lock_nodes is nobody's then
    CONSTRAINT cluster_pkey PRIMARY KEY (only_row),
    CONSTRAINT cluster_one_row CHECK (only_row)
) WITH (fillfactor = 50);
DO $$ BEGIN
    INSERT INTO cluster (timeline) VALUES (left(pg_walfile_name(pg_current_wal_lsn()), 8));
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR object_not_in_prerequisite_state THEN
    INSERT INTO cluster DEFAULT VALUES; -- a managed server that does not tell it: 0015 finds another way
END $$;

-- A promoted standby may lack the last fences and ids that its primary gave out. So each session calls this before its first claim:
-- on a timeline that is new both jump past all of them (an id is what handlers tell other systems of their effects), once, because
-- the others wait for the row and then find it done. Fails
-- on a server that is in recovery.
CREATE FUNCTION guard_fence() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    now_on text := left(pg_walfile_name(pg_current_wal_lsn()), 8);
BEGIN
    IF (SELECT timeline = now_on FROM cluster) THEN
        RETURN false;
    END IF;
    UPDATE cluster SET timeline = now_on WHERE timeline <> now_on;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM setval('fence', nextval('fence') + 4294967296);
    PERFORM setval('job_id_seq', nextval('job_id_seq') + 4294967296);
    RETURN true;
END $$;

-- Both tables with the states that people know.
CREATE VIEW jobs AS
SELECT id, kind, queue, args, priority, share,
       CASE WHEN state = 'running' THEN 'running'
            WHEN ready_at <= statement_timestamp() THEN 'available'
            WHEN attempt > 0 THEN 'retryable'
            ELSE 'scheduled' END AS state,
       created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000') AS worker_id,
       NULLIF(attempted_at, 'epoch') AS attempted_at, max_attempts, timeout, tags, metadata,
       NULL::timestamptz AS finalized_at, NULL::jsonb AS result, NULL::text AS error
  FROM job
UNION ALL
SELECT id, kind, queue, args, priority, share, state, created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000'),
       NULLIF(attempted_at, 'epoch'), max_attempts, timeout, tags, metadata,
       finalized_at, result, error
  FROM job_history;

-- Makes the days of the history from today to `ahead` days on, where they are missing; returns how many it made. LIKE + ATTACH,
-- because CREATE TABLE … PARTITION OF waits for every open reader of the history and stops the writers behind it.
CREATE FUNCTION ensure_days(ahead integer DEFAULT 14) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    day date;
    name text;
    made integer := 0;
BEGIN
    IF ahead IS NULL OR ahead NOT BETWEEN 0 AND 366 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'ahead: must be 0 to 366 days';
    END IF;
    FOR n IN 0..ahead LOOP
        day := (clock_timestamp() AT TIME ZONE 'UTC')::date + n;
        name := 'job_history_' || to_char(day, 'YYYYMMDD');
        IF to_regclass('claimd.' || name) IS NULL THEN
            -- Two leaders would collide on the names. ATTACH takes this very lock, and only who owns the table can hold it: any
            -- login can hold an advisory lock, and a worker's a row of `cluster`.
            LOCK TABLE job_history IN SHARE UPDATE EXCLUSIVE MODE;
        END IF;
        IF to_regclass('claimd.' || name) IS NULL THEN
            EXECUTE format('CREATE TABLE claimd.%I (LIKE claimd.job_history INCLUDING ALL)', name);
            EXECUTE format('ALTER TABLE claimd.job_history ATTACH PARTITION claimd.%I FOR VALUES FROM (%L) TO (%L)', name,
                           day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
END $$;

SELECT ensure_days(14);

-- At most one NOTIFY per statement, and only while somebody waits for it: a NOTIFY takes a lock that all commits share.
CREATE FUNCTION job_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT hungry FROM cluster) THEN
        PERFORM pg_notify('claimd', '');
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER job_inserted AFTER INSERT ON job FOR EACH STATEMENT EXECUTE FUNCTION job_inserted();

-- Not overloaded for json: with both, the untyped '{…}' of everybody else would be ambiguous.
CREATE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                        scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                        timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                        share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE
        WHEN kind IS NULL OR kind !~ '^[a-z][a-z0-9_]*$' OR octet_length(kind) > 64
        THEN 'kind: must match ^[a-z][a-z0-9_]*$ and have at most 64 octets'
        WHEN queue IS NULL OR queue !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(queue) > 64
        THEN 'queue: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 octets'
        WHEN priority IS NULL OR priority NOT BETWEEN 0 AND 9
        THEN 'priority: must be 0 (first) to 9'
        WHEN args IS NULL
        THEN 'args: must be a JSON value, not NULL'
        WHEN pg_column_size(args) > 2000 AND octet_length(args::text) > 1048576
        THEN 'args: at most 1048576 octets as JSON text'
        WHEN scheduled_at > '2286-01-01 00:00:00+00'
        THEN 'scheduled_at: must lie before the year 2286, so not infinity; the past means now'
        WHEN max_attempts < 1
        THEN 'max_attempts: must be 1 or more'
        WHEN timeout <= interval '0' OR timeout > interval '366 days'
        THEN 'timeout: must be more than 0 and at most 366 days'
        WHEN pg_column_size(tags) > 8192
        THEN 'tags: at most 8192 octets together'
        WHEN pg_column_size(metadata) > 2000 AND octet_length(metadata::text) > 65536
        THEN 'metadata: at most 65536 octets as JSON text'
        WHEN unique_key IS NOT NULL
        THEN 'unique_key: not supported by this version, must be NULL'
        WHEN exclusive_key IS NOT NULL
        THEN 'exclusive_key: not supported by this version, must be NULL'
    END;
    new_id bigint;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    INSERT INTO job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata)
    VALUES (kind, args, queue, priority,
            -- Not stored as it is: many a client can't read -infinity, nor years before the first.
            CASE WHEN scheduled_at >= '0001-01-01 00:00:00+00' THEN scheduled_at ELSE clock_timestamp() END, max_attempts, timeout,
            CASE WHEN share_key IS NULL THEN 0
                 ELSE 1 + (hashtextextended(share_key, 0) & 9223372036854775807) % 63 END,
            tags, metadata)
    RETURNING id INTO new_id;
    RETURN new_id;
END $$;

-- Cancels a job that is not running; a second time is no error.
CREATE FUNCTION cancel(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    WITH gone AS (
        DELETE FROM job j WHERE j.id = cancel.id AND j.state = 'available' RETURNING j.*
    )
    INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
                             generation, priority, share, state, queue, kind, args, max_attempts, timeout, tags, metadata)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
           g.generation, g.priority, g.share, 'cancelled', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags, g.metadata
      FROM gone g;
    IF FOUND THEN
        RETURN 'cancelled';
    END IF;
    SELECT j.state INTO found_state FROM job j WHERE j.id = cancel.id;
    IF NOT FOUND THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = cancel.id ORDER BY h.finalized_at DESC LIMIT 1;
    END IF;
    IF found_state = 'cancelled' THEN
        RETURN 'cancelled';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || id || CASE found_state
            WHEN 'running' THEN ' is running: only a job that is not running can be cancelled'
            WHEN 'available' THEN ' has just changed: try again'
            ELSE COALESCE(' is ' || found_state || ' already', ' not found') END;
END $$;

-- For doctor: can anything be written? Needs new pages on the disk and a commit, and leaves nothing behind.
CREATE FUNCTION probe_write() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    CREATE UNLOGGED TABLE doctor_probe (n integer, filler text);
    INSERT INTO doctor_probe SELECT n, repeat(md5(n::text), 60) FROM generate_series(1, 4000) AS n;
    DROP TABLE doctor_probe;
END $$;

-- Privileges: each role has what its programs do, by column where that is less. Functions are public by default.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA claimd FROM PUBLIC;
GRANT USAGE ON SCHEMA claimd TO claimd_admin, claimd_worker, claimd_producer, claimd_reader;

GRANT SELECT ON ALL TABLES IN SCHEMA claimd TO claimd_admin, claimd_reader;
GRANT SELECT ON SEQUENCE fence TO claimd_admin, claimd_reader; -- no fence lies above it

GRANT EXECUTE ON FUNCTION enqueue, cancel TO claimd_admin, claimd_producer;
GRANT INSERT (kind, args, queue, priority, scheduled_at, max_attempts, timeout, tags, metadata) ON job
    TO claimd_admin, claimd_producer;
GRANT SELECT (id) ON job TO claimd_producer; -- for RETURNING id

GRANT INSERT, UPDATE, DELETE ON queue TO claimd_admin;
GRANT UPDATE (lock_nodes, lock_nodes_before) ON cluster TO claimd_admin;
GRANT UPDATE (dead) ON worker TO claimd_admin;
GRANT EXECUTE ON FUNCTION ensure_days, probe_write TO claimd_admin;

GRANT USAGE ON SEQUENCE fence TO claimd_worker;
GRANT EXECUTE ON FUNCTION guard_fence TO claimd_worker;
GRANT SELECT, DELETE ON job TO claimd_worker;
GRANT UPDATE (state, attempt, crashes, fence, worker_id, attempted_at, scheduled_at) ON job TO claimd_worker;
GRANT INSERT, SELECT ON job_history TO claimd_worker;
GRANT INSERT, SELECT ON job_attempt TO claimd_worker;
GRANT INSERT, SELECT, UPDATE, DELETE ON job_live TO claimd_worker;
GRANT INSERT, SELECT, UPDATE ON kind, worker TO claimd_worker;
GRANT SELECT ON queue, cluster TO claimd_worker;
GRANT UPDATE (t_max_us, lock_nodes) ON cluster TO claimd_worker;

RESET ROLE;

-- ---- down ----
DROP SCHEMA claimd CASCADE;
