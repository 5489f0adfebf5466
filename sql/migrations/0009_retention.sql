-- SPDX-License-Identifier: Apache-2.0
-- How long finished jobs are kept, by queue, kind and end, and how many snoozes. The guide: docs/guide/retention.md.

-- Without a rule a job is kept for the leader's history_days.
CREATE TABLE retention (
    days integer NOT NULL, -- 0: not kept at all, only counted
    scope text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL, -- in which the job ended; '': any that has no rule of its own
    CONSTRAINT retention_pkey PRIMARY KEY (scope, name, state),
    CONSTRAINT retention_scope CHECK (scope IN ('queue', 'kind')),
    CONSTRAINT retention_state CHECK (state IN ('', 'completed', 'discarded', 'cancelled')),
    CONSTRAINT retention_days CHECK (days BETWEEN 1 AND 3650 OR (days = 0 AND scope = 'kind' AND state = 'completed'))
);

-- What was deleted of a day that is over. No row: nothing.
CREATE TABLE history_day (
    day date NOT NULL,
    age integer NOT NULL, -- in days, when it was looked through
    is_empty boolean NOT NULL, -- nothing was left of it
    rules text NOT NULL, -- by which
    CONSTRAINT history_day_pkey PRIMARY KEY (day)
);

-- Completed jobs of kinds that keep none: per minute and worker, and once that is over, per hour.
CREATE TABLE completed_count (
    at timestamptz NOT NULL,
    worker_id uuid NOT NULL, -- all zeros: an hour, of all
    jobs bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    CONSTRAINT completed_count_pkey PRIMARY KEY (at, worker_id, kind, queue)
) WITH (fillfactor = 50);

-- How many of them ended since then; the minute in which that lies counts in part.
CREATE FUNCTION counted_since(since timestamptz) RETURNS TABLE (kind text, queue text, jobs numeric)
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT c.kind, c.queue,
           sum(c.jobs * extract(epoch FROM u.til - GREATEST(c.at, since)) / GREATEST(0.001, extract(epoch FROM u.til - c.at)))
      FROM completed_count c
     CROSS JOIN LATERAL (SELECT LEAST(clock_timestamp(), c.at + interval '1 minute') AS til) u
     WHERE c.at > since - interval '1 minute' AND c.worker_id <> '00000000-0000-0000-0000-000000000000'
     GROUP BY c.kind, c.queue
$$;

-- Minutes that are over become hours, so that what is kept of a day stays small.
CREATE FUNCTION fold_counts(keep integer) RETURNS void
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

-- ---- rules ----
CREATE FUNCTION why_no_keep(scope text, keep interval, state text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN keep = interval '0' AND (scope = 'kind' AND state = 'completed') IS NOT TRUE
            THEN 'must be 1 to 3650 days, or NULL for the default; only completed jobs of a kind may be kept for 0 days'
            WHEN extract(epoch FROM keep) % 86400 <> 0 OR extract(epoch FROM keep) NOT BETWEEN 0 AND 3650 * 86400::bigint
            THEN 'must be 1 to 3650 whole days, or NULL for the default' END;

CREATE FUNCTION set_retention(scope text, name text, keep interval, state text) RETURNS void
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

-- A time that a rule can't have, where it is none.
CREATE FUNCTION keep_of(said text) RETURNS interval
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN CASE WHEN said = 'none' THEN interval '0' ELSE said::interval END;
EXCEPTION WHEN data_exception THEN
    RETURN interval '-1 s';
END $$;

-- Finished jobs of a queue are kept for so many whole days; `state`: only those that ended so. NULL: as if nothing had been said, of
-- all states unless one is named.
CREATE FUNCTION retain_queue(queue text, keep interval, state text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_no_queue(queue);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM set_retention('queue', queue, keep, state);
END $$;

CREATE FUNCTION retain_kind(kind text, keep interval, state text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM need_kind(kind);
    PERFORM set_retention('kind', kind, keep, state);
    PERFORM forget_kind(kind);
END $$;

-- The rule that holds for such a job: the kind's before the queue's, and that for its end before that for any. A job that was kept
-- although its kind keeps none stays for a day.
CREATE FUNCTION kept_days(kind text, queue text, state text, usual integer) RETURNS integer
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT GREATEST(1, COALESCE((SELECT r.days FROM retention r
                                  WHERE (r.scope, r.name) IN (('kind', kept_days.kind), ('queue', kept_days.queue))
                                    AND r.state IN ('', kept_days.state)
                                  ORDER BY r.scope = 'kind' DESC, r.state <> '' DESC
                                  LIMIT 1), usual))
$$;

CREATE FUNCTION longest_days(usual integer) RETURNS integer
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT GREATEST(usual, max(r.days)) FROM retention r
$$;

-- ---- days that are over, by the leading scheduler ----
-- The oldest day of which something is to be deleted, and how old it is in days. Not before it has been over for a day: whoever ends a
-- job in a long transaction puts it into the day of its beginning.
CREATE FUNCTION day_to_sweep(usual integer, OUT day date, OUT age integer, OUT rules text)
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

-- Deletes from these pages of a day what is older than its rule, with failed attempts, edits, and keys that would say what the job can't
-- any more. `next_page`: where to go on; NULL: it was the last one.
CREATE FUNCTION sweep_day(day date, age integer, usual integer, page bigint, pages integer,
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

-- It was looked through to its end.
CREATE FUNCTION day_swept(day date, age integer, rules text, is_empty boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    INSERT INTO history_day AS h (day, age, rules, is_empty) VALUES (day_swept.day, day_swept.age, day_swept.rules, day_swept.is_empty)
        ON CONFLICT ON CONSTRAINT history_day_pkey
        DO UPDATE SET age = excluded.age, rules = excluded.rules, is_empty = excluded.is_empty
$$;

-- ---- attempts ----
-- Of the snoozes of a generation the last 20 are kept, and some more: a job may snooze each second for days. One snooze in eight looks,
-- since a look takes 50 µs.
CREATE FUNCTION keep_last_snoozes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    DELETE FROM job_attempt a
     WHERE a.job_id = NEW.job_id AND a.generation = NEW.generation AND a.outcome = 'snoozed'
       AND a.fence < (SELECT l.fence FROM job_attempt l
                       WHERE l.job_id = NEW.job_id AND l.generation = NEW.generation AND l.outcome = 'snoozed'
                       ORDER BY l.fence DESC OFFSET 19 LIMIT 1);
    RETURN NULL;
END $$;
CREATE TRIGGER keep_last_snoozes AFTER INSERT ON job_attempt FOR EACH ROW WHEN (NEW.outcome = 'snoozed' AND hashint8(NEW.fence) & 7 = 0)
    EXECUTE FUNCTION keep_last_snoozes();

REVOKE ALL ON FUNCTION counted_since, fold_counts, set_retention, why_no_keep, keep_of, retain_queue, retain_kind, kept_days,
    longest_days, day_to_sweep, sweep_day, day_swept, keep_last_snoozes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION retain_queue, retain_kind TO claimd_admin;
GRANT EXECUTE ON FUNCTION counted_since TO claimd_admin, claimd_reader;
GRANT SELECT ON retention TO claimd_worker;
GRANT SELECT, INSERT, UPDATE ON completed_count TO claimd_worker;
GRANT SELECT ON retention, history_day, completed_count TO claimd_admin, claimd_reader;

-- ---- down ----
DROP TRIGGER keep_last_snoozes ON job_attempt;
DROP FUNCTION keep_last_snoozes, day_swept, sweep_day, day_to_sweep, longest_days, kept_days, retain_kind, retain_queue, keep_of, set_retention, why_no_keep, fold_counts, counted_since;
DROP TABLE completed_count, history_day, retention;
