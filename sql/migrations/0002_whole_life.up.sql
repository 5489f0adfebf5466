-- SPDX-License-Identifier: Apache-2.0
-- What a job's whole life needs, beside a fleet that goes on (B40): columns that cost no rewrite, and who may work with which schema.

-- ---- programs and schemas ----
-- A program works with a schema if it was built for `oldest_program` or later, and not for a later version than the schema's. So a
-- migration stops nobody. What older programs would break can't be used before finish_upgrade() has said that none is left.
ALTER TABLE cluster
    ADD COLUMN oldest_program integer NOT NULL DEFAULT 1,
    ADD COLUMN schema_part integer NOT NULL DEFAULT 0; -- parts that are done of the migration under way
-- Programs that were built for version 1 don't say it.
ALTER TABLE worker ADD COLUMN built_for integer NOT NULL DEFAULT 1;
ALTER TABLE scheduler ADD COLUMN built_for integer NOT NULL DEFAULT 1;

-- From now on programs that were built for an older schema can't start. CL003 while one works. Returns the version.
CREATE FUNCTION finish_upgrade() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    newest integer;
    older text;
BEGIN
    -- program_joins() waits for this row: whoever joins now is seen, or sees what is written here.
    SELECT schema_version INTO newest FROM cluster FOR UPDATE;
    SELECT string_agg(who, ', ' ORDER BY who) INTO older
      FROM (SELECT format('worker %s on %s', w.pid, w.host) AS who FROM worker w
             WHERE w.built_for < newest AND NOT w.stopped AND NOT w.dead
            UNION ALL
            SELECT format('scheduler %s on %s', s.pid, s.host) FROM scheduler s
             WHERE s.built_for < newest AND s.stale_at > clock_timestamp()) AS p;
    IF older IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'still at work, of an older release: ' || older;
    END IF;
    UPDATE cluster SET oldest_program = newest WHERE oldest_program <> newest;
    RETURN newest;
END $$;

-- For functions that make what programs built for less than `version` would break.
CREATE FUNCTION require_program(version integer) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT oldest_program < version FROM cluster) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = 'programs of an older release may still work, which would break this: run `claimctl db finish` once all '
                      'schedulers and workers are replaced';
    END IF;
END $$;

CREATE FUNCTION program_joins() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    oldest integer;
BEGIN
    SELECT oldest_program INTO oldest FROM cluster FOR KEY SHARE;
    IF NEW.built_for < oldest THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = format('this program was built for version %s of the schema, %s is needed: use a newer build', NEW.built_for,
                             oldest);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER program_joins BEFORE INSERT ON worker FOR EACH ROW EXECUTE FUNCTION program_joins();
CREATE TRIGGER program_joins BEFORE INSERT ON scheduler FOR EACH ROW EXECUTE FUNCTION program_joins();
REVOKE ALL ON FUNCTION finish_upgrade, require_program, program_joins FROM PUBLIC;
GRANT EXECUTE ON FUNCTION finish_upgrade TO claimd_admin;

-- ---- columns of a job ----
ALTER TABLE job
    ADD COLUMN flags smallint NOT NULL DEFAULT 0, -- what its end must free; 0 = nothing, so the claim and the end ask nobody else
    ADD COLUMN version integer NOT NULL DEFAULT 1, -- rises with each edit
    ADD COLUMN unique_key text COLLATE "C",
    ADD COLUMN backoff text COLLATE "C", -- NULL: the kind's
    ADD CONSTRAINT job_unique_key_size CHECK (octet_length(unique_key) BETWEEN 1 AND 512) NOT VALID,
    ADD CONSTRAINT job_backoff_form CHECK (backoff ~ '^(exponential|linear):[0-9]+(ms|s|m|h|d):[0-9]+(ms|s|m|h|d)(~[0-9]+%)?$' OR
                                           backoff ~ '^(fixed|list):[0-9]+(ms|s|m|h|d)(,[0-9]+(ms|s|m|h|d))*(~[0-9]+%)?$') NOT VALID;
ALTER TABLE job_history
    ADD COLUMN flags smallint NOT NULL DEFAULT 0,
    ADD COLUMN version integer NOT NULL DEFAULT 1,
    ADD COLUMN unique_key text COLLATE "C",
    ADD COLUMN backoff text COLLATE "C";

CREATE OR REPLACE VIEW jobs AS
SELECT id, kind, queue, args, priority, share,
       CASE WHEN state = 'running' THEN 'running'
            WHEN ready_at <= statement_timestamp() THEN 'available'
            WHEN attempt > 0 THEN 'retryable'
            ELSE 'scheduled' END AS state,
       created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000') AS worker_id,
       NULLIF(attempted_at, 'epoch') AS attempted_at, max_attempts, timeout, tags, metadata,
       NULL::timestamptz AS finalized_at, NULL::jsonb AS result, NULL::text AS error, flags, version, unique_key, backoff
  FROM job
UNION ALL
SELECT id, kind, queue, args, priority, share, state, created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000'),
       NULLIF(attempted_at, 'epoch'), max_attempts, timeout, tags, metadata,
       finalized_at, result, error, flags, version, unique_key, backoff
  FROM job_history;

-- Cancels a job that is not running; a second time is no error.
CREATE OR REPLACE FUNCTION cancel(id bigint) RETURNS text
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
                             generation, priority, share, state, queue, kind, args, max_attempts, timeout, tags, metadata,
                             flags, version, unique_key, backoff)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
           g.generation, g.priority, g.share, 'cancelled', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags, g.metadata,
           g.flags, g.version, g.unique_key, g.backoff
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

-- ---- part: alone ----
-- Reads the whole table beside everybody's work, so not in the transaction above, which locks it.
ALTER TABLE job VALIDATE CONSTRAINT job_unique_key_size, VALIDATE CONSTRAINT job_backoff_form;
