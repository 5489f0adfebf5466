-- SPDX-License-Identifier: Apache-2.0
-- What a job's whole life needs, beside a fleet that goes on (B40): columns that cost no rewrite, and who may work with which schema.

-- ---- programs and schemas ----
-- A program works with a schema if it was built for `oldest_program` or later, and not for a later version than the schema's. So a
-- migration stops nobody. What older programs would break can't be used before finish_upgrade() has said that none is left.
ALTER TABLE cluster
    ADD COLUMN oldest_program integer NOT NULL DEFAULT 1,
    ADD COLUMN schema_part integer NOT NULL DEFAULT 0; -- parts that are done of the migration under way
ALTER TABLE scheduler ADD COLUMN built_for integer NOT NULL DEFAULT 1; -- programs that were built for version 1 don't say it
ALTER TABLE worker
    ADD COLUMN built_for integer NOT NULL DEFAULT 1,
    ADD COLUMN asked text NOT NULL DEFAULT '', -- 'quiet' or 'drain': it is told with the answer to its next beat
    ADD CONSTRAINT worker_asked CHECK (asked IN ('', 'quiet', 'drain')) NOT VALID;

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

-- ---- NOTIFY ----
-- After a NOTIFY a transaction can't be prepared (PREPARE TRANSACTION), so a session may do without: SET claimd.notify = off. What it
-- brings is then found by the pass of each second, a cancel is heard of with the worker's next beat.
CREATE FUNCTION may_notify() RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    setting text := COALESCE(NULLIF(current_setting('claimd.notify', true), ''), 'on');
BEGIN
    IF setting NOT IN ('on', 'off') THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'claimd.notify: must be on or off';
    END IF;
    RETURN setting = 'on';
END $$;

-- ---- whose jobs are whose ----
-- Off: every producer may look at and cancel every job. On: a job, or a batch, belongs to the role that made it: the one of SET ROLE, else
-- the login. What was made before belongs to nobody. What is off costs nothing: the column has a default while it is on.
ALTER TABLE cluster ADD COLUMN owners boolean NOT NULL DEFAULT false;

-- Also of the session that has called a function of the owner of this schema.
CREATE FUNCTION acting_role() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE current_setting('role') WHEN 'none' THEN session_user::text ELSE current_setting('role') END;

-- Those that it may act for: that it is, or could become by SET ROLE. So a login may come and go, and its role keeps the jobs.
CREATE FUNCTION own_roles() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.rolname FROM pg_roles r
     WHERE pg_has_role(claimd.acting_role(), r.oid, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END)
$$;

-- Raises 42501 unless it may act for the owner of this thing; claimd's own programs, admins and, to read, readers may.
CREATE FUNCTION check_owner(thing text, owner text, reads boolean) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest('{claimd_admin,claimd_scheduler,claimd_worker,claimd_reader}'::text[]) AS u(role)
                WHERE (reads OR u.role <> 'claimd_reader') AND pg_has_role(acting_role(), u.role, 'USAGE'))
       OR owner IN (SELECT own_roles()) THEN
        RETURN;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
        MESSAGE = format('%s belongs to %s: role %s may not act for it', thing, COALESCE('role ' || owner, 'nobody'), acting_role()),
        HINT = CASE WHEN owner IS NULL THEN 'It was made while the cluster had no owners: ask an admin.'
                    ELSE format('GRANT %I TO %I', owner, acting_role()) END;
END $$;

CREATE FUNCTION check_job_owners(ids bigint[], reads boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    IF (SELECT owners FROM cluster) THEN
        PERFORM check_owner('job ' || j.id, j.owner, reads)
           FROM (SELECT o.id, o.owner FROM job o WHERE o.id = ANY (ids)
                  UNION ALL
                 SELECT h.id, h.owner FROM job_history h WHERE h.id = ANY (ids)) AS j;
    END IF;
END $$;

CREATE FUNCTION check_batch_owner(batch bigint, reads boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT owners FROM cluster) THEN
        PERFORM check_owner('batch ' || b.id, b.owner, reads) FROM batch b WHERE b.id = check_batch_owner.batch;
    END IF;
END $$;

-- Waits for open transactions that have made jobs, and those who come meanwhile wait for it: not for long.
CREATE FUNCTION set_owners(are_on boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    change text := CASE WHEN are_on THEN 'SET DEFAULT claimd.acting_role()' ELSE 'DROP DEFAULT' END;
BEGIN
    IF are_on IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'are_on: must be true or false';
    END IF;
    PERFORM require_program(2); -- an older one would lose them when a job ends
    EXECUTE 'ALTER TABLE claimd.job ALTER COLUMN owner ' || change;
    EXECUTE 'ALTER TABLE claimd.batch ALTER COLUMN owner ' || change;
    UPDATE cluster SET owners = are_on WHERE owners <> are_on;
END $$;

-- ---- jobs ----
-- What model/backoff.h says; NULL is NULL.
-- A function with a setting is not inlined: the planner would read its body for each INSERT into `job`, which took a third of it.
CREATE FUNCTION backoff_is_valid(backoff text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN octet_length(backoff) <= 100
   AND (backoff ~ '^(exponential|linear):[0-9]+(ms|s|m|h|d):[0-9]+(ms|s|m|h|d)(~[0-9]+%)?$'
        OR backoff ~ '^fixed:[0-9]+(ms|s|m|h|d)(~[0-9]+%)?$'
        OR backoff ~ '^list:[0-9]+(ms|s|m|h|d)(,[0-9]+(ms|s|m|h|d)){0,19}(~[0-9]+%)?$')
   AND backoff !~ '[^0-9]0[0-9]'
   AND COALESCE(substring(backoff FROM '~([0-9]+)%$')::numeric, 0) <= 100
   AND NOT EXISTS (SELECT FROM regexp_matches(backoff, '([0-9]+)(ms|s|m|h|d)', 'g') AS m
                    WHERE m[1]::numeric * CASE m[2] WHEN 'ms' THEN 1 WHEN 's' THEN 1000 WHEN 'm' THEN 60000
                                                    WHEN 'h' THEN 3600000 ELSE 86400000 END > 31622400000);

CREATE FUNCTION why_no_backoff(backoff text) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN NOT backoff_is_valid(backoff)
            THEN 'backoff: must be exponential:15s:1h, linear:10s:1h, fixed:30s or list:1s,5s,1m (at most 20), each with ~10% '
                 'behind it or not, at most 100 octets and 366 days' END;

CREATE FUNCTION why_no_grace(grace interval) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN grace < interval '1 ms' OR grace > interval '1 hour' THEN 'grace: must be 1 ms to 1 hour' END;

-- The lane of a tenant. Programs that were built for version 1 know those up to 63. Neither SECURITY DEFINER nor with a search_path, each
-- of which would cost as much as its work: bulk inserts call it for each row. So no name in it is looked up by the caller's path.
CREATE FUNCTION share_of(key text) RETURNS smallint
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN 1 OPERATOR(pg_catalog.+)
           ((pg_catalog.hashtextextended(key, 0) OPERATOR(pg_catalog.&) 9223372036854775807) OPERATOR(pg_catalog.%)
            CASE WHEN (SELECT c.oldest_program OPERATOR(pg_catalog.<) 2 FROM claimd.cluster c) THEN 63 ELSE 16383 END);
END $$;

ALTER TABLE job
    ADD COLUMN flags smallint NOT NULL DEFAULT 0, -- what its end must free; 0 = nothing, so the claim and the end ask nobody else
    ADD COLUMN version integer NOT NULL DEFAULT 1, -- rises with each edit
    ADD COLUMN unique_key text COLLATE "C",
    ADD COLUMN backoff text COLLATE "C", -- NULL: the kind's
    ADD COLUMN exclusive_key text COLLATE "C",
    ADD COLUMN share_key text COLLATE "C", -- whose it is; `share` is made of it, by share_of()
    ADD COLUMN second_key text COLLATE "C", -- a second exclusive key, of those that have one
    ADD COLUMN grace interval, -- NULL: the kind's
    ADD COLUMN owner text COLLATE "C", -- NULL: it was made while the cluster had no owners
    ADD CONSTRAINT job_unique_key_size CHECK (octet_length(unique_key) BETWEEN 1 AND 512) NOT VALID,
    ADD CONSTRAINT job_backoff_valid CHECK (backoff_is_valid(backoff)) NOT VALID,
    -- 2 among the flags says that the key is there: claims and ends of runs look at nothing else.
    ADD CONSTRAINT job_exclusive_key_form
        CHECK (exclusive_key IS NULL OR (octet_length(exclusive_key) BETWEEN 1 AND 512 AND flags & 2 <> 0)) NOT VALID,
    ADD CONSTRAINT job_share_key_form
        CHECK (share_key IS NULL OR (octet_length(share_key) BETWEEN 1 AND 512 AND share > 0)) NOT VALID,
    DROP CONSTRAINT job_share_range,
    ADD CONSTRAINT job_share_range CHECK (share BETWEEN 0 AND 16383) NOT VALID;
ALTER TABLE job_history
    ADD COLUMN flags smallint NOT NULL DEFAULT 0,
    ADD COLUMN version integer NOT NULL DEFAULT 1,
    ADD COLUMN unique_key text COLLATE "C",
    ADD COLUMN backoff text COLLATE "C",
    -- A finished job went back to work: its row stays, says that it is not the last word any more, and the view leaves it out. NULL
    -- costs no octet, so what ends costs what it did.
    ADD COLUMN retried_at timestamptz,
    ADD COLUMN exclusive_key text COLLATE "C",
    ADD COLUMN share_key text COLLATE "C",
    ADD COLUMN second_key text COLLATE "C",
    ADD COLUMN grace interval,
    ADD COLUMN owner text COLLATE "C";
ALTER TABLE kind
    ADD COLUMN paused boolean NOT NULL DEFAULT false,
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN paused_by text,
    ADD COLUMN keep_log boolean NOT NULL DEFAULT false, -- of attempts that completed, too
    ADD COLUMN set_by_hand jsonb NOT NULL DEFAULT '{}', -- by set_kind(): its columns that the plugin does not say any more,
    ADD COLUMN of_plugin jsonb NOT NULL DEFAULT '{}', -- and what it said of them
    ADD COLUMN backoff text COLLATE "C", -- NULL: exponential:15s:1h~10%
    -- False: somebody has set something for it, and no worker has said yet that it has it.
    ADD COLUMN is_announced boolean NOT NULL DEFAULT true,
    ADD COLUMN grace interval, -- from being told to stop until being killed; NULL: lock.guard_ms of the worker
    ADD COLUMN limited boolean NOT NULL DEFAULT false, -- the limits of the key kind:NAME hold for its jobs
    ADD CONSTRAINT kind_backoff_valid CHECK (backoff_is_valid(backoff)) NOT VALID;
ALTER TABLE queue
    ADD COLUMN max_running integer, -- NULL: as many as there are runners
    ADD COLUMN limited boolean NOT NULL DEFAULT false, -- its jobs are claimed by claim_limited()
    ADD COLUMN rate double precision, -- starts per second; NULL: any
    ADD COLUMN max_open integer, -- jobs that have not ended; NULL: any number
    ADD CONSTRAINT queue_max_open_range CHECK (max_open BETWEEN 1 AND 10000000),
    ADD COLUMN paused_at timestamptz, -- if by pause_queue()
    ADD COLUMN paused_by text,
    ADD CONSTRAINT queue_max_running_range CHECK (max_running BETWEEN 1 AND 10000),
    ADD CONSTRAINT queue_rate_range CHECK (rate > 0 AND rate <= 100000);

-- What can be said to a running job, and what it says of itself. Version 1 never writes it: it is empty.
ALTER TABLE job_live
    ADD COLUMN percent smallint, -- of `progress`, its text
    ADD COLUMN changed_at timestamptz, -- when it last said something of itself
    ADD CONSTRAINT job_live_percent_range CHECK (percent BETWEEN 0 AND 100),
    ADD CONSTRAINT job_live_progress_size CHECK (length(progress) <= 200),
    ADD CONSTRAINT job_live_checkpoint_size
        CHECK (octet_length(checkpoint::text) <= 65536);
-- For the workers' beats: they ask for nothing else, and it is nearly always empty.
CREATE INDEX job_live_cancel ON job_live (id) WHERE cancel_requested;

-- The scheduled_at of a job that waits for others (0008): no claim takes it, no feed reads it.
CREATE FUNCTION job_waits() RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN timestamptz '2285-12-31 00:00:00+00';

-- The state of an open job, in the words of people. Flag 32 tells one that waits for others from one that somebody wants that late.
CREATE FUNCTION open_state(state text, ready_at timestamptz, attempt integer, flags smallint) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN state = 'running' THEN 'running'
            WHEN ready_at <= statement_timestamp() THEN 'available'
            WHEN flags & 32 <> 0 AND ready_at = job_waits() THEN 'waiting'
            WHEN attempt > 0 THEN 'retryable'
            ELSE 'scheduled' END;

-- ---- names that somebody mistyped ----
-- How many letters are inserted, left out, changed or swapped with the next one.
CREATE FUNCTION edits(a text, b text) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    second integer[];
    before integer[];
    now integer[] := ARRAY(SELECT generate_series(0, length(b)));
BEGIN
    FOR i IN 1..length(a) LOOP
        second := before;
        before := now;
        now[1] := i;
        FOR k IN 1..length(b) LOOP
            now[k + 1] := LEAST(before[k + 1] + 1, now[k] + 1, before[k] + (substr(a, i, 1) <> substr(b, k, 1))::integer,
                                CASE WHEN i > 1 AND k > 1 AND substr(a, i - 1, 2) = reverse(substr(b, k - 1, 2)) THEN second[k - 1] + 1 END);
        END LOOP;
    END LOOP;
    RETURN now[length(b) + 1];
END $$;

-- Of a name that is none of the known ones: which are, and which of them is near: a third of its letters (of short names one or two)
-- differ, or it begins so. As base/nearest.h.
CREATE FUNCTION why_unknown(name text, known text[]) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT concat('unknown, must be one of ', array_to_string(known, ', '),
                  (SELECT format('; did you mean ''%s''?', c.word)
                     FROM (SELECT u.word, u.n,
                                  CASE WHEN length(name) >= 2 AND starts_with(u.word, name) THEN 1 ELSE edits(left(name, 80), u.word) END AS edits
                             FROM unnest(known) WITH ORDINALITY AS u(word, n)) AS c
                    WHERE c.edits <= CASE WHEN length(c.word) > 5 THEN length(c.word) / 3 WHEN length(c.word) > 3 THEN 2 ELSE 1 END
                    ORDER BY c.edits, c.n LIMIT 1))
$$;

REVOKE ALL ON FUNCTION acting_role, own_roles, check_owner, check_job_owners, check_batch_owner, set_owners, edits, why_unknown, may_notify, finish_upgrade, require_program, program_joins, backoff_is_valid, why_no_backoff,
    why_no_grace, share_of, job_waits, open_state FROM PUBLIC;
GRANT EXECUTE ON FUNCTION acting_role, own_roles, job_waits, open_state TO claimd_admin, claimd_producer, claimd_reader;
GRANT EXECUTE ON FUNCTION finish_upgrade, set_owners TO claimd_admin;
GRANT EXECUTE ON FUNCTION may_notify TO claimd_admin, claimd_producer; -- job_inserted() asks it
GRANT EXECUTE ON FUNCTION backoff_is_valid TO claimd_admin, claimd_producer, claimd_worker;
GRANT INSERT (backoff, share, share_key, exclusive_key, second_key, grace) ON job TO claimd_admin, claimd_producer;
GRANT UPDATE (flags) ON job TO claimd_worker; -- 128: job_live has a checkpoint of the job
GRANT EXECUTE ON FUNCTION share_of TO claimd_admin, claimd_producer;
GRANT SELECT (oldest_program) ON cluster TO claimd_producer; -- share_of() asks for it

-- ---- part: alone ----
-- Reads the whole table beside everybody's work, so not in the transaction above, which locks it.
ALTER TABLE job VALIDATE CONSTRAINT job_unique_key_size, VALIDATE CONSTRAINT job_backoff_valid,
                VALIDATE CONSTRAINT job_exclusive_key_form, VALIDATE CONSTRAINT job_share_key_form,
                VALIDATE CONSTRAINT job_share_range;
-- ---- part: alone ----
ALTER TABLE kind VALIDATE CONSTRAINT kind_backoff_valid;
-- ---- part: alone ----
ALTER TABLE worker VALIDATE CONSTRAINT worker_asked;
-- ---- part: alone ----
DROP INDEX CONCURRENTLY IF EXISTS job_exclusive;
-- ---- part: alone ----
-- Not of jobs with two keys: what waits of those is in key_waiting (0007).
CREATE INDEX CONCURRENTLY job_exclusive ON job (exclusive_key, priority, ready_at, id)
    WHERE exclusive_key IS NOT NULL AND second_key IS NULL;

-- ---- down ----
DROP FUNCTION open_state, job_waits;
ALTER TABLE job DROP COLUMN flags, DROP COLUMN version, DROP COLUMN unique_key, DROP COLUMN backoff, DROP COLUMN exclusive_key,
                DROP COLUMN share_key, DROP COLUMN second_key,
                DROP COLUMN grace, DROP COLUMN owner, DROP CONSTRAINT job_share_range;
REVOKE INSERT (share) ON job FROM claimd_admin, claimd_producer;
UPDATE job SET share = 1 + (share - 1) % 63 WHERE share > 63;
ALTER TABLE job ADD CONSTRAINT job_share_range CHECK (share BETWEEN 0 AND 63);
ALTER TABLE job_history DROP COLUMN flags, DROP COLUMN version, DROP COLUMN unique_key, DROP COLUMN backoff, DROP COLUMN retried_at,
                        DROP COLUMN exclusive_key, DROP COLUMN share_key, DROP COLUMN second_key,
                        DROP COLUMN grace, DROP COLUMN owner;
ALTER TABLE kind DROP COLUMN is_announced, DROP COLUMN limited, DROP COLUMN grace, DROP COLUMN keep_log, DROP COLUMN set_by_hand, DROP COLUMN of_plugin, DROP COLUMN paused, DROP COLUMN paused_at, DROP COLUMN paused_by, DROP COLUMN backoff;
ALTER TABLE queue DROP COLUMN max_running, DROP COLUMN limited, DROP COLUMN rate, DROP COLUMN max_open,
                  DROP COLUMN paused_at, DROP COLUMN paused_by;
DROP INDEX job_live_cancel;
ALTER TABLE job_live DROP COLUMN percent, DROP COLUMN changed_at, DROP CONSTRAINT job_live_progress_size,
                     DROP CONSTRAINT job_live_checkpoint_size;
DROP FUNCTION why_unknown, edits, backoff_is_valid, why_no_grace, why_no_backoff, share_of;
DROP TRIGGER program_joins ON worker;
DROP TRIGGER program_joins ON scheduler;
DROP FUNCTION program_joins, require_program, finish_upgrade, may_notify, set_owners, check_batch_owner, check_job_owners, check_owner,
    own_roles, acting_role;
ALTER TABLE worker DROP COLUMN built_for, DROP COLUMN asked;
ALTER TABLE scheduler DROP COLUMN built_for;
ALTER TABLE cluster DROP COLUMN oldest_program, DROP COLUMN schema_part, DROP COLUMN owners;
