-- SPDX-License-Identifier: Apache-2.0
-- The days of the history, how long they are kept, and the counts of jobs that are not kept.

-- Creates the missing days of the history; returns their number. It does not wait for work on other days: after a step of the clock,
-- no job can end before this has run. A clock that has gone back creates days of the past, and jobs that end meanwhile go into them.
-- When the clock is right again, these days must not be taken for old ones, even if this leader dies now: so the leader's look at the
-- clock is stored in the same transaction.
CREATE OR REPLACE FUNCTION ensure_days(ahead integer DEFAULT 14) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
            -- login can hold an advisory lock, and a worker's a row of `cluster`. Not its days: one may be getting an index.
            LOCK TABLE ONLY claimd.job_history IN SHARE UPDATE EXCLUSIVE MODE;
        END IF;
        IF to_regclass('claimd.' || name) IS NULL THEN
            EXECUTE format('CREATE TABLE claimd.%I (LIKE claimd.job_history INCLUDING ALL)', name);
            EXECUTE format('ALTER TABLE claimd.job_history ATTACH PARTITION claimd.%I FOR VALUES FROM (%L) TO (%L)', name,
                           day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
            made := made + 1;
        END IF;
    END LOOP;
    IF made > 0 THEN
        UPDATE claimd.cluster SET sweep_at = clock_timestamp() WHERE sweep_at > clock_timestamp();
    END IF;
    RETURN made;
END $$;

-- Confirms that the clock is right, whatever it did: from the next second on, the leader deletes old history by it.
CREATE OR REPLACE FUNCTION trust_clock() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE claimd.cluster SET sweep_at = clock_timestamp(), sweep_hold_us = 0
$$;

-- Returns how many completed jobs that are only counted have ended since then; the minute of `since` counts in part.
CREATE OR REPLACE FUNCTION counted_since(since timestamptz) RETURNS TABLE (kind text, queue text, jobs numeric)
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT c.kind, c.queue,
           sum(c.jobs * extract(epoch FROM u.til - GREATEST(c.at, since)) / GREATEST(0.001, extract(epoch FROM u.til - c.at)))
      FROM completed_count c
     CROSS JOIN LATERAL (SELECT LEAST(clock_timestamp(), c.at + interval '1 minute') AS til) u
     WHERE c.at > since - interval '1 minute' AND c.worker_id <> '00000000-0000-0000-0000-000000000000'
     GROUP BY c.kind, c.queue
$$;

-- Combines the counts of past minutes into hours, so that few rows are stored for a day, and deletes counts
-- that are older than `keep` days.
CREATE OR REPLACE FUNCTION fold_counts(keep integer) RETURNS void
LANGUAGE sql SET search_path = claimd, pg_catalog, pg_temp AS $$
    DELETE FROM completed_count c WHERE c.at < now() - make_interval(days => keep);
    WITH old AS (
        DELETE FROM completed_count c
         WHERE c.worker_id <> '00000000-0000-0000-0000-000000000000' AND c.at < date_trunc('hour', now()) - interval '1 hour'
        RETURNING c.*
    )
    INSERT INTO completed_count AS c (at, worker_id, kind, queue, jobs)
    SELECT date_trunc('hour', o.at), '00000000-0000-0000-0000-000000000000', o.kind, o.queue, sum(o.jobs) FROM old o GROUP BY 1, 3, 4
        ON CONFLICT ON CONSTRAINT completed_count_pkey DO UPDATE SET jobs = c.jobs + excluded.jobs;
$$;

CREATE OR REPLACE FUNCTION why_no_keep(scope text, keep interval, state text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN keep = interval '0' AND (scope = 'kind' AND state = 'completed') IS NOT TRUE
            THEN 'must be 1 to 3650 days, or NULL for the default; only completed jobs of a kind may be kept for 0 days'
            WHEN extract(epoch FROM keep) % 86400 <> 0 OR extract(epoch FROM keep) NOT BETWEEN 0 AND 3650 * 86400::bigint
            THEN 'must be 1 to 3650 whole days, or NULL for the default' END;

CREATE OR REPLACE FUNCTION set_retention(scope text, name text, keep interval, state text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    wrong text := CASE
        WHEN set_retention.state NOT IN ('completed', 'discarded', 'cancelled')
        THEN 'state: must be completed, discarded or cancelled, or NULL for all'
        ELSE 'keep: ' || why_no_keep(set_retention.scope, keep, set_retention.state)
    END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM require_program(2); -- an older scheduler would drop days that are to be kept
    IF keep IS NULL THEN
        DELETE FROM retention r WHERE r.scope = set_retention.scope AND r.name = set_retention.name
           AND r.state = COALESCE(set_retention.state, r.state);
        RETURN;
    END IF;
    INSERT INTO retention (scope, name, state, days)
    VALUES (set_retention.scope, set_retention.name, COALESCE(set_retention.state, ''), extract(epoch FROM keep) / 86400)
        ON CONFLICT ON CONSTRAINT retention_pkey DO UPDATE SET days = excluded.days;
END $$;

-- Returns the interval of a text; if it is not an interval, returns one that no rule can have.
CREATE OR REPLACE FUNCTION keep_of(said text) RETURNS interval
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN CASE WHEN said = 'none' THEN interval '0' ELSE said::interval END;
EXCEPTION WHEN data_exception THEN
    RETURN interval '-1 s';
END $$;

-- Sets for how many whole days finished jobs of a queue are kept; `state`: only of jobs that ended in this state. NULL removes the
-- rule for the state, or all rules of the queue if no state is given.
CREATE OR REPLACE FUNCTION retain_queue(queue text, keep interval, state text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_no_queue(queue);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM set_retention('queue', queue, keep, state);
END $$;

CREATE OR REPLACE FUNCTION retain_kind(kind text, keep interval, state text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM need_kind(kind);
    PERFORM set_retention('kind', kind, keep, state);
    PERFORM forget_kind(kind);
END $$;

-- Returns for how many days such a job is kept: the kind's rule precedes the queue's, and a rule for its final state precedes one for
-- all states. A job that was kept although its kind keeps none stays for a day.
CREATE OR REPLACE FUNCTION kept_days(kind text, queue text, state text, usual integer) RETURNS integer
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT GREATEST(1, COALESCE((SELECT r.days FROM retention r
                                  WHERE (r.scope, r.name) IN (('kind', kept_days.kind), ('queue', kept_days.queue))
                                    AND r.state IN ('', kept_days.state)
                                  ORDER BY r.scope = 'kind' DESC, r.state <> '' DESC
                                  LIMIT 1), usual))
$$;

CREATE OR REPLACE FUNCTION longest_days(usual integer) RETURNS integer
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT GREATEST(usual, max(r.days)) FROM retention r
$$;

-- Returns the oldest day from which something is to be deleted, and its age in days. A day is left alone until it has been over for a
-- day, because a long transaction that ended a job before midnight may commit its row later.
CREATE OR REPLACE FUNCTION day_to_sweep(usual integer, OUT day date, OUT age integer, OUT rules text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    rules := (SELECT md5(usual || COALESCE(string_agg(concat_ws(' ', r.scope, r.name, r.state, r.days), ',' ORDER BY r.*), ''))
                FROM retention r);
    SELECT d.day, d.age INTO day, age
      FROM (SELECT p.day, (clock_timestamp() AT TIME ZONE 'UTC')::date - p.day AS age
              FROM (SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day
                      FROM pg_inherits i
                      JOIN pg_class c ON c.oid = i.inhrelid
                     WHERE i.inhparent = 'job_history'::regclass AND NOT i.inhdetachpending
                       AND c.relname ~ '^job_history_[0-9]{8}$') AS p) AS d
      LEFT JOIN history_day h ON h.day = d.day
     WHERE d.age BETWEEN 2 AND longest_days(usual)
       AND EXISTS (SELECT FROM (SELECT GREATEST(1, r.days) AS days FROM retention r UNION ALL SELECT usual) AS k
                    WHERE k.days < d.age AND (h.day IS NULL OR h.rules <> day_to_sweep.rules OR k.days >= h.age))
     ORDER BY d.day
     LIMIT 1;
END $$;

-- Deletes from these pages of a day the jobs that are older than their rule, with their failed attempts and edits, and with unique
-- keys that would block for ever, since nothing would show any more that their job did not complete. `next_page`: where to continue;
-- NULL: this was the last page.
CREATE OR REPLACE FUNCTION sweep_day(day date, age integer, usual integer, page bigint, pages integer,
                          OUT next_page bigint, OUT deleted bigint, OUT left_over bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off SET jit = off SET lock_timeout = '1s' AS $$
DECLARE
    name text := 'claimd.job_history_' || to_char(day, 'YYYYMMDD');
BEGIN
    EXECUTE format($sql$
        WITH seen AS MATERIALIZED (
            SELECT ctid AS at, kind, queue, state FROM %s WHERE ctid >= %L AND ctid < %L
        ), doomed AS MATERIALIZED (
            SELECT s.kind, s.queue, s.state FROM (SELECT DISTINCT kind, queue, state FROM seen) AS s
             WHERE kept_days(s.kind, s.queue, s.state, $1) < $2
        ), gone AS (
            DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT s.at FROM seen s WHERE (s.kind, s.queue, s.state) IN (SELECT * FROM doomed)))
            RETURNING id, generation, state, unique_key
        ), attempts AS (
            DELETE FROM job_attempt a USING gone g WHERE a.job_id = g.id AND a.generation = g.generation
        ), edits AS (
            DELETE FROM job_edit e USING gone g WHERE e.job_id = g.id AND e.generation = g.generation
        ), keys AS (
            DELETE FROM job_key k USING gone g
             WHERE k.key = g.unique_key AND k.job_id = g.id AND k.states = 'completed' AND g.state <> 'completed'
        )
        SELECT count(*), (SELECT count(*) FROM seen) FROM gone
    $sql$, name, format('(%s,0)', page), format('(%s,0)', page + pages), name)
       INTO deleted, left_over USING usual, age;
    left_over := left_over - deleted;
    next_page := page + pages;
    IF next_page * current_setting('block_size')::bigint >= pg_relation_size(name::regclass) THEN
        next_page := NULL;
    END IF;
END $$;

-- Records that a day was swept to its end.
CREATE OR REPLACE FUNCTION day_swept(day date, age integer, rules text, is_empty boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    INSERT INTO history_day AS h (day, age, rules, is_empty) VALUES (day_swept.day, day_swept.age, day_swept.rules, day_swept.is_empty)
        ON CONFLICT ON CONSTRAINT history_day_pkey
        DO UPDATE SET age = excluded.age, rules = excluded.rules, is_empty = excluded.is_empty
$$;

-- Keeps at least the last 20 snoozes of a generation and deletes older ones: a job may snooze each second for days. Only one snooze
-- in eight runs this, because it takes 50 µs.
CREATE OR REPLACE FUNCTION keep_last_snoozes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    DELETE FROM job_attempt a
     WHERE a.job_id = NEW.job_id AND a.generation = NEW.generation AND a.outcome = 'snoozed'
       AND a.fence < (SELECT l.fence FROM job_attempt l
                       WHERE l.job_id = NEW.job_id AND l.generation = NEW.generation AND l.outcome = 'snoozed'
                       ORDER BY l.fence DESC OFFSET 19 LIMIT 1);
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION ensure_days, trust_clock, counted_since, fold_counts, why_no_keep, set_retention, keep_of,
    retain_queue, retain_kind, kept_days, longest_days, day_to_sweep, sweep_day, day_swept, keep_last_snoozes
    FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION ensure_days, trust_clock, retain_queue, retain_kind TO claimd_admin;
GRANT EXECUTE ON FUNCTION counted_since TO claimd_admin, claimd_reader;
