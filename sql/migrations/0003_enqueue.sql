-- SPDX-License-Identifier: Apache-2.0
-- How jobs come in: one by one, many at once, and unique ones: who enqueues gives a key, or says of what one is made, and another job
-- with it stands in the way while its scope says so. A queue may be full. The guide: docs/guide/enqueueing.md,
-- docs/guide/unique-jobs.md.

-- What a job is asked for with: the parameters of enqueue(), by name and type.
CREATE TYPE job_request AS (
    kind text,
    args jsonb,
    queue text,
    priority integer,
    scheduled_at timestamptz,
    max_attempts integer,
    timeout interval,
    unique_key text,
    exclusive_key text,
    share_key text,
    tags text[],
    metadata jsonb,
    unique_by text[],
    unique_for interval,
    unique_states text,
    on_conflict text,
    backoff text,
    after bigint[], -- jobs that it waits for
    if_dead text,
    expires_at timestamptz,
    after_jobs integer[], -- positions in its array, from 0
    second_key text,
    grace interval
);

-- The holder of each key. Whether it still stands in the way is decided when somebody wants the key, by the job's state at that
-- moment: a row that should be gone harms nobody. So the end of a job frees its key where it can do so without waiting.
CREATE TABLE job_key (
    job_id bigint NOT NULL,
    expires_at timestamptz, -- NULL: for as long as `states` say
    key text COLLATE "C" NOT NULL,
    states text NOT NULL, -- of its job, in which it stands in the way
    CONSTRAINT job_key_pkey PRIMARY KEY (key),
    CONSTRAINT job_key_states CHECK (states IN ('queued', 'open', 'completed', 'all'))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

-- Of a transaction to which a job with states = 'queued' was "there already": it must start after the commit, or it would not see what the
-- transaction has written. Empty at every commit: keep_promises() has emptied it by then.
CREATE UNLOGGED TABLE job_promise (
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    key text COLLATE "C" NOT NULL,
    request jsonb NOT NULL -- if the key's job has started: to be made after all
);
CREATE INDEX job_promise_xact ON job_promise (xact);

-- ---- what is asked for ----
CREATE FUNCTION request_keys() RETURNS text[]
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp
RETURN ARRAY(SELECT attname::text FROM pg_attribute
              WHERE attrelid = 'job_request'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum);

-- Those with which an element may meet a job that is there already.
CREATE FUNCTION unique_fields() RETURNS text[] LANGUAGE sql IMMUTABLE
RETURN '{unique_key,unique_by,unique_for,unique_states,on_conflict}'::text[];

-- What is wrong with the name of a queue; NULL: nothing. Its callers get it inline, as the next one.
CREATE FUNCTION why_no_queue(queue text) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN queue IS NULL OR queue !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(queue) > 64
            THEN 'queue: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 octets' END;

-- What the table doesn't check of what is for people; NULL: nothing.
CREATE FUNCTION why_no_labels(tags text[], metadata jsonb) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(tags) > 1
            THEN 'tags: must be a list of texts'
            WHEN array_position(tags, NULL) IS NOT NULL
            THEN 'tags: must be a list of texts, without NULL'
            WHEN jsonb_typeof(metadata) <> 'object'
            THEN 'metadata: must be a JSON object' END;

-- Is a value too long as text? A number takes few octets and may be long when it is written out: 1e131071 takes 16. So the text is made
-- of every value, because nothing cheaper tells: numbers can't be compared by their scale, and a look at each takes longer than the text
-- (0.2 us for 60 octets, 2.5 us per kB). The producer of 1e131071 pays for its text himself, once. Claims return many args at once: any
-- double, written out, is up to 21 times as long as it is stored, what is more than 32 times as long may have 65536 octets. What comes
-- compressed is stored compressed, and never comes with a claim: for it, `most` alone holds.
CREATE FUNCTION is_too_long(j jsonb, most integer) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN octet_length(j::text) > CASE WHEN pg_column_compression(j) IS NULL
                                    THEN LEAST(most, GREATEST(65536, 32 * pg_column_size(j))) ELSE most END;

-- What is wrong with a job, naming the argument; NULL: nothing. Its callers get it inline.
CREATE FUNCTION why_refused(kind text, args jsonb, queue text, priority integer, scheduled_at timestamptz, max_attempts integer,
                            timeout interval, exclusive_key text, second_key text, share_key text, tags text[], metadata jsonb)
RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN kind IS NULL OR kind !~ '^[a-z][a-z0-9_]*$' OR octet_length(kind) > 64
    THEN 'kind: must match ^[a-z][a-z0-9_]*$ and have at most 64 octets'
    WHEN why_no_queue(queue) IS NOT NULL
    THEN why_no_queue(queue)
    WHEN priority IS NULL OR priority NOT BETWEEN 0 AND 9
    THEN 'priority: must be 0 (first) to 9'
    WHEN args IS NULL
    THEN 'args: must be a JSON value, not NULL'
    WHEN is_too_long(args, 1048576)
    THEN 'args: at most 1048576 octets as JSON text, or 65536 if long numbers such as 1e9999 are written out in it'
    WHEN scheduled_at > '2286-01-01 00:00:00+00'
    THEN 'scheduled_at: must lie before the year 2286, so not infinity; the past means now'
    WHEN max_attempts < 1
    THEN 'max_attempts: must be 1 or more'
    WHEN timeout <= interval '0' OR timeout > interval '366 days'
    THEN 'timeout: must be more than 0 and at most 366 days'
    WHEN pg_column_size(tags) > 8192
    THEN 'tags: at most 8192 octets together'
    WHEN is_too_long(metadata, 65536)
    THEN 'metadata: at most 65536 octets as JSON text'
    WHEN why_no_labels(tags, metadata) IS NOT NULL
    THEN why_no_labels(tags, metadata)
    WHEN octet_length(exclusive_key) NOT BETWEEN 1 AND 512
    THEN 'exclusive_key: must have 1 to 512 octets'
    WHEN octet_length(second_key) NOT BETWEEN 1 AND 512
    THEN 'second_key: must have 1 to 512 octets'
    WHEN octet_length(share_key) NOT BETWEEN 1 AND 512
    THEN 'share_key: must have 1 to 512 octets'
END;

CREATE FUNCTION parts_are_known(unique_by text[]) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN cardinality(unique_by) BETWEEN 1 AND 32
       AND NOT EXISTS (SELECT FROM unnest(unique_by) AS part WHERE (part ~ '^(kind|queue|args|args\..+)$') IS NOT TRUE);
END $$;

CREATE FUNCTION why_not_unique(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN (r.on_conflict IN ('error', 'ignore', 'replace_args', 'reschedule', 'replace')) IS NOT TRUE
    THEN 'on_conflict: must be error, ignore, replace_args, reschedule or replace'
    WHEN octet_length(r.unique_key) NOT BETWEEN 1 AND 512
    THEN 'unique_key: must have 1 to 512 octets'
    WHEN r.unique_key IS NOT NULL AND NOT r.unique_by <@ '{kind,queue}'
    THEN 'unique_by: together with unique_key, must be a list of kind and queue'
    WHEN r.unique_key IS NULL AND r.unique_by IS NULL
    THEN CASE WHEN r.unique_for IS NOT NULL THEN 'unique_for: needs unique_key or unique_by'
              WHEN r.unique_states IS NOT NULL THEN 'unique_states: needs unique_key or unique_by' END
    WHEN r.unique_by IS NOT NULL AND NOT parts_are_known(r.unique_by)
    THEN 'unique_by: must be a list of kind, queue, args and args.NAME, at most 32'
    WHEN r.unique_for <= interval '0' OR r.unique_for > interval '366 days'
    THEN 'unique_for: must be more than 0 and at most 366 days'
    WHEN r.unique_states NOT IN ('queued', 'open', 'completed', 'all')
    THEN 'unique_states: must be queued, open, completed or all'
    WHEN r.unique_states IN ('completed', 'all') AND r.unique_for IS NULL
    THEN 'unique_states: ' || r.unique_states || ' needs unique_for'
END;

CREATE FUNCTION why_not_after(after bigint[], if_dead text) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(after) > 1
            THEN 'after: must be a list of ids'
            WHEN cardinality(after) NOT BETWEEN 1 AND 10000 OR array_position(after, NULL) IS NOT NULL
            THEN 'after: must be 1 to 10000 ids, without NULL'
            WHEN if_dead IS NOT NULL AND after IS NULL
            THEN 'if_dead: needs after'
            WHEN if_dead NOT IN ('cancel', 'run', 'hold')
            THEN 'if_dead: must be cancel, run or hold' END;

CREATE FUNCTION why_no_expiry(expires_at timestamptz, scheduled_at timestamptz) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN NOT isfinite(expires_at) OR expires_at > '2286-01-01 00:00:00+00'
            THEN 'expires_at: must lie before the year 2286'
            WHEN expires_at <= scheduled_at
            THEN 'expires_at: must be later than scheduled_at' END;

CREATE FUNCTION request_refusal(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN COALESCE(why_refused(r.kind, r.args, r.queue, r.priority, r.scheduled_at, r.max_attempts, r.timeout, r.exclusive_key, r.second_key,
                            r.share_key, r.tags, r.metadata), why_no_backoff(r.backoff), why_no_grace(r.grace), why_not_unique(r),
                why_not_after(COALESCE(r.after, CASE WHEN r.after_jobs IS NOT NULL THEN '{1}'::bigint[] END), r.if_dead),
                why_no_expiry(r.expires_at, r.scheduled_at));

-- A JSON text, hashed when it is long.
CREATE FUNCTION key_of_parts(r job_request) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    key text := (SELECT (jsonb_object_agg(part, CASE part WHEN 'kind' THEN to_jsonb(r.kind)
                                                         WHEN 'queue' THEN to_jsonb(r.queue)
                                                         WHEN 'args' THEN r.args
                                                         ELSE r.args -> substr(part, 6) END)
                         || CASE WHEN r.unique_key IS NULL THEN '{}' ELSE jsonb_build_object('key', r.unique_key) END)::text
                   FROM unnest(r.unique_by) AS part);
BEGIN
    RETURN CASE WHEN octet_length(key) <= 512 THEN key ELSE 'sha256:' || encode(sha256(convert_to(key, 'UTF8')), 'hex') END;
END $$;

-- The key that it wants, if any.
CREATE FUNCTION request_key(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN r.unique_by IS NULL THEN r.unique_key ELSE key_of_parts(r) END;

-- ---- keys ----
-- The history may have been small when this was planned.
CREATE FUNCTION ended_badly(job_id bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM job_history h WHERE h.id = job_id AND h.retried_at IS NULL AND h.state <> 'completed');
END $$;

-- Does its job stand in the way?
CREATE FUNCTION key_holds(k job_key) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
BEGIN
    IF k.expires_at <= clock_timestamp() THEN
        RETURN false;
    END IF;
    SELECT j.state INTO found_state FROM job j WHERE j.id = k.job_id;
    IF FOUND THEN
        RETURN k.states <> 'queued' OR found_state = 'available';
    END IF;
    RETURN k.states = 'all' OR (k.states = 'completed' AND NOT ended_badly(k.job_id));
END $$;

-- Gives the key to the job, unless another one stands in the way; returns who has it then. Of two calls at once one waits for the
-- other's transaction. Where the answer is another job nothing is locked, except the key if this call has waited for it.
CREATE FUNCTION take_key(wanted text, states text, expires_at timestamptz, new_id bigint) RETURNS job_key
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    holder job_key;
    taken job_key;
BEGIN
    FOR try IN 1..100 LOOP
        INSERT INTO job_key AS k (key, job_id, states, expires_at) VALUES (wanted, new_id, take_key.states, take_key.expires_at)
            ON CONFLICT ON CONSTRAINT job_key_pkey DO NOTHING
            RETURNING k.* INTO taken;
        IF FOUND THEN
            RETURN taken;
        END IF;
        SELECT * INTO holder FROM job_key k WHERE k.key = wanted;
        CONTINUE WHEN NOT FOUND;
        IF key_holds(holder) THEN
            RETURN holder;
        END IF;
        UPDATE job_key k SET job_id = new_id, states = take_key.states, expires_at = take_key.expires_at
         WHERE k.key = wanted AND k.job_id = holder.job_id
        RETURNING k.* INTO taken;
        IF FOUND THEN
            RETURN taken;
        END IF;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'unique_key: it changes hands all the time: try again';
END $$;

-- What on_conflict says about a key that a job has. False: that job no longer stands in the way, since it has just started or ended.
CREATE FUNCTION meet_holder(r job_request, holder job_key) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
BEGIN
    IF r.on_conflict = 'ignore' THEN
        RETURN true;
    END IF;
    IF r.on_conflict <> 'error' THEN
        PERFORM check_job_owners(ARRAY[holder.job_id]);
        BEGIN
            PERFORM edit(holder.job_id, CASE r.on_conflict WHEN 'replace_args' THEN jsonb_build_object('args', r.args)
                                                           WHEN 'replace' THEN jsonb_build_object('args', r.args, 'scheduled_at', r.scheduled_at)
                                                           ELSE jsonb_build_object('scheduled_at', r.scheduled_at) END);
            RETURN true;
        EXCEPTION WHEN SQLSTATE 'CL003' THEN
            NULL; -- it doesn't wait (any more)
        END;
    END IF;
    IF NOT key_holds(holder) THEN
        RETURN false;
    END IF;
    SELECT CASE WHEN j.state = 'running' THEN ' and runs' ELSE ' and waits' END INTO found_state FROM job j WHERE j.id = holder.job_id;
    RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder.job_id::text,
        MESSAGE = format('unique_key: job %s has this key%s%s', holder.job_id, COALESCE(found_state, ' and is over'),
                         CASE WHEN r.on_conflict <> 'error' THEN ': only one that waits can be changed' END);
END $$;

-- ---- enqueue ----
-- The flag of jobs with an exclusive key. A program built for an older schema would claim them as if they had none.
CREATE FUNCTION exclusive_flag() RETURNS smallint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM require_program(2);
    RETURN 2;
END $$;

-- Stores it, or finds the job that stands in its way. NOT waits: the caller lets it wait for others, with after_many().
CREATE FUNCTION enqueue_request(r job_request, waits boolean DEFAULT true, OUT id bigint, OUT inserted boolean)
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := request_refusal(r);
    key text;
    states text;
    holder job_key;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    id := nextval('job_id_seq');
    IF r.unique_key IS NOT NULL OR r.unique_by IS NOT NULL THEN
        key := request_key(r);
        states := COALESCE(r.unique_states, CASE WHEN r.unique_for IS NULL THEN 'open' ELSE 'all' END);
        LOOP -- again only after another transaction has moved the job that was in the way
            holder := take_key(key, states, clock_timestamp() + r.unique_for, id);
            EXIT WHEN holder.job_id = id OR meet_holder(r, holder);
        END LOOP;
        IF holder.job_id <> id THEN
            IF holder.states = 'queued' AND r.on_conflict = 'ignore' THEN -- an edit keeps it locked
                INSERT INTO job_promise (key, request) VALUES (key, to_jsonb(r));
            END IF;
            id := holder.job_id;
            inserted := false;
            RETURN;
        END IF;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.name = r.queue AND q.max_open IS NOT NULL) THEN
        PERFORM take_room(r.queue, 1);
    END IF;
    INSERT INTO job (id, kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, unique_key, flags,
                     backoff, exclusive_key, share_key, second_key, grace)
    OVERRIDING SYSTEM VALUE
    VALUES (id, r.kind, r.args, r.queue, r.priority,
            CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
            r.max_attempts, r.timeout, COALESCE(share_of(r.share_key), 0), r.tags, r.metadata, key, CASE WHEN states IN ('queued', 'open') THEN 1 ELSE 0 END
            + CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END + CASE WHEN r.expires_at IS NULL THEN 0 ELSE 2048 END,
            r.backoff, r.exclusive_key, r.share_key, r.second_key, r.grace);
    inserted := true;
    IF r.expires_at IS NOT NULL THEN
        PERFORM require_program(19); -- an older one would start it late
        INSERT INTO job_deadline (job_id, expires_at) VALUES (id, r.expires_at);
    END IF;
    IF r.kind IS DISTINCT FROM current_setting('claimd.kind', true) THEN
        PERFORM look_at_kind(r.kind);
    END IF;
    IF waits AND r.after IS NOT NULL THEN
        PERFORM after(id, r.after, COALESCE(r.if_dead, 'cancel'));
    END IF;
END $$;

-- At the commit, so that a job is locked for as long as that takes, not for as long as a producer's transaction: of many producers at once
-- there is always one with a transaction open, and the job would never start. The key is locked before its job, and keys in their order:
-- a lock stays when the row that was waited for is no longer the one that was wanted, so producers of one key that locked its jobs first
-- would wait for each other in a circle. They queue up for the key, and the worker that claims the job waits for one of them at most.
CREATE FUNCTION keep_promises() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    p record;
    holder bigint;
BEGIN
    FOR p IN WITH mine AS (DELETE FROM job_promise WHERE xact = pg_current_xact_id() RETURNING key, request)
             SELECT key, request FROM mine ORDER BY key LOOP
        SELECT k.job_id INTO holder FROM job_key k WHERE k.key = p.key FOR NO KEY UPDATE;
        PERFORM FROM job j WHERE j.id = holder AND j.state = 'available' FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            PERFORM enqueue_request(jsonb_populate_record(NULL::job_request, p.request));
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER keep_promises AFTER INSERT ON job_promise DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION keep_promises();

DROP FUNCTION enqueue;
-- Not overloaded for json: with both, the untyped '{…}' of everybody else would be ambiguous.
CREATE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                        scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                        timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                        share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                        unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                        on_conflict text DEFAULT 'error', backoff text DEFAULT NULL, after bigint[] DEFAULT NULL,
                        if_dead text DEFAULT NULL, expires_at timestamptz DEFAULT NULL, second_key text DEFAULT NULL, grace interval DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_refused(kind, args, queue, priority, scheduled_at, max_attempts, timeout, exclusive_key, second_key, share_key,
                              tags, metadata);
    new_id bigint;
BEGIN
    IF unique_key IS NOT NULL OR unique_by IS NOT NULL OR unique_for IS NOT NULL OR unique_states IS NOT NULL
       OR on_conflict IS DISTINCT FROM 'error' OR after IS NOT NULL OR if_dead IS NOT NULL OR expires_at IS NOT NULL THEN
        RETURN (enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                                    share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff,
                                    after, if_dead, expires_at, NULL, second_key, grace))).id;
    END IF;
    wrong := COALESCE(wrong, why_no_backoff(backoff), why_no_grace(grace));
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.name = enqueue.queue AND q.max_open IS NOT NULL) THEN
        PERFORM take_room(queue, 1);
    END IF;
    INSERT INTO job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff,
                     exclusive_key, share_key, second_key, grace, flags)
    VALUES (kind, args, queue, priority,
            -- Not stored as it is: many a client can't read -infinity, nor years before the first.
            CASE WHEN scheduled_at >= '0001-01-01 00:00:00+00' THEN scheduled_at ELSE clock_timestamp() END, max_attempts, timeout,
            COALESCE(share_of(share_key), 0), tags, metadata, backoff, exclusive_key, share_key, second_key, grace,
            CASE WHEN exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END)
    RETURNING id INTO new_id;
    IF kind IS DISTINCT FROM current_setting('claimd.kind', true) THEN
        PERFORM look_at_kind(kind);
    END IF;
    RETURN new_id;
END $$;

-- The same, and whether it made the job; for whom a job that is there already is no error.
CREATE FUNCTION enqueue_unique(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                               scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                               timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                               share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                               unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                               on_conflict text DEFAULT 'ignore', backoff text DEFAULT NULL, after bigint[] DEFAULT NULL,
                               if_dead text DEFAULT NULL, expires_at timestamptz DEFAULT NULL, second_key text DEFAULT NULL,
                               grace interval DEFAULT NULL, OUT id bigint, OUT inserted boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF unique_key IS NULL AND unique_by IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'unique_key: must be given, or unique_by';
    END IF;
    SELECT e.id, e.inserted INTO id, inserted
      FROM enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                               share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff, after,
                               if_dead, expires_at, NULL, second_key, grace)) AS e;
END $$;

-- ---- enqueue_many ----
-- The element with the defaults of enqueue() for what is left out or null.
CREATE FUNCTION request_of(element jsonb) RETURNS job_request
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    r job_request := jsonb_populate_record(NULL::job_request, element);
BEGIN
    r.args := COALESCE(r.args, '{}');
    r.queue := COALESCE(r.queue, 'default');
    r.priority := COALESCE(r.priority, 4);
    r.on_conflict := COALESCE(r.on_conflict, 'error');
    RETURN r;
END $$;

-- The record with this value of a field; `place` tells where it came from, if it is of another type.
CREATE FUNCTION with_value(r anyelement, field text, value jsonb, place text) RETURNS anyelement
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN jsonb_populate_record(r, jsonb_build_object(field, value));
EXCEPTION WHEN data_exception THEN
    RAISE EXCEPTION USING ERRCODE = 'CL002',
        MESSAGE = format('%s.%s: must be of type %s: %s', place, field,
                         (SELECT format_type(a.atttypid, a.atttypmod)
                            FROM pg_attribute a JOIN pg_type t ON t.typrelid = a.attrelid
                           WHERE t.oid = pg_typeof(r) AND a.attname = field), SQLERRM);
END $$;

-- Raises CL002 for the first element that enqueue() would refuse; else returns.
CREATE FUNCTION refuse_requests(jobs jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    request jsonb;
    n bigint;
    field text;
    wrong text;
BEGIN
    FOR request, n IN SELECT e.value, e.ordinality - 1 FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e LOOP
        IF jsonb_typeof(request) <> 'object' THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('jobs[%s]: must be an object', n);
        END IF;
        FOR field IN SELECT jsonb_object_keys(request) LOOP
            IF field <> ALL (known) THEN
                RAISE EXCEPTION USING ERRCODE = 'CL002',
                    MESSAGE = format('jobs[%s].%s: %s', n, left(field, 64), why_unknown(field, known));
            END IF;
            PERFORM with_value(NULL::job_request, field, request -> field, format('jobs[%s]', n));
        END LOOP;
        wrong := COALESCE(request_refusal(request_of(request)), why_not_after_jobs((request_of(request)).after_jobs, n));
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('jobs[%s].%s', n, wrong);
        END IF;
    END LOOP;
END $$;

-- Those with keys one by one, in the order of the keys: two calls that want the same ones in another order would lock each other out.
-- Then their predecessors, for the same reason in the order of ids, as a single call has its key before them.
CREATE FUNCTION enqueue_many_unique(jobs jsonb) RETURNS TABLE (id bigint, inserted boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    ids bigint[];
    made boolean[];
    one record;
    wanted record;
    place text := ''; -- in the array, of what is enqueued
    holder text;
BEGIN
    IF jobs IS NULL OR jsonb_typeof(jobs) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'jobs: must be a JSON array of objects';
    END IF;
    IF NOT EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e WHERE e ?| unique_fields()) THEN
        RETURN QUERY SELECT e.id, true FROM enqueue_many(jobs) AS e(id);
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e WHERE jsonb_typeof(e) <> 'object' OR e - known <> '{}') THEN
        PERFORM refuse_requests(jobs);
    END IF;
    FOR wanted IN SELECT t.n, t.r
                    FROM (SELECT e.ordinality AS n, request_of(e.value) AS r
                            FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e
                          OFFSET 0) AS t
                   ORDER BY request_key(t.r) COLLATE "C" NULLS FIRST, t.n LOOP
        place := format('jobs[%s]', wanted.n - 1);
        IF why_not_after_jobs((wanted.r).after_jobs, wanted.n - 1) IS NOT NULL THEN
            PERFORM refuse_requests(jobs);
        END IF;
        one := enqueue_request(wanted.r, false);
        ids[wanted.n] := one.id;
        made[wanted.n] := one.inserted;
    END LOOP;
    place := '';
    PERFORM after_many(jobs, ids, made) WHERE jsonb_path_exists(jobs, '$[*] ? (exists(@.after) || exists(@.after_jobs))');
    RETURN QUERY SELECT * FROM unnest(ids, made);
EXCEPTION
    WHEN SQLSTATE 'CL004' THEN
        GET STACKED DIAGNOSTICS holder = PG_EXCEPTION_DETAIL;
        RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder, MESSAGE = concat_ws('.', NULLIF(place, ''), SQLERRM);
    WHEN SQLSTATE 'CL003' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = concat_ws(': ', NULLIF(place, ''), SQLERRM);
    WHEN SQLSTATE 'CL002' OR data_exception OR integrity_constraint_violation THEN
        PERFORM refuse_requests(jobs) WHERE jsonb_typeof(jobs) = 'array';
        RAISE;
END $$;

-- An array of objects, each with the parameters of enqueue() as keys; null means the default. All or none. Returns the ids in the
-- order of the array. The table checks the elements, a NULL as kind stands for what it can't check; they are looked at one by one
-- only when something is wrong.
CREATE FUNCTION enqueue_many(jobs jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    may_wait boolean;
    may_expire boolean;
    marks smallint[]; -- the flags 32 (waits for others) and 16 (others wait for it) of each
    ids bigint[];
BEGIN
    IF jobs IS NULL OR jsonb_typeof(jobs) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'jobs: must be a JSON array of objects';
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e WHERE e ?| unique_fields()) THEN
        RETURN QUERY SELECT e.id FROM enqueue_many_unique(jobs) AS e;
        RETURN;
    END IF;
    SELECT bool_or(e ?| '{after,after_jobs,if_dead}'), bool_or(e ? 'expires_at') INTO may_wait, may_expire
      FROM jsonb_array_elements(jobs) AS e;
    IF EXISTS (SELECT FROM queue q WHERE q.max_open IS NOT NULL) THEN
        PERFORM take_rooms(jobs);
    END IF;
    PERFORM look_at_kind(u.name)
       FROM (SELECT DISTINCT e ->> 'kind' AS name FROM jsonb_array_elements(jobs) AS e) AS u;
    IF may_wait THEN
        marks := waiting_marks(jobs);
    END IF;
    WITH made AS (
        INSERT INTO job AS j (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff,
                              exclusive_key, share_key, second_key, grace, flags)
        SELECT CASE WHEN e.request - known = '{}' AND why_no_labels(r.tags, r.metadata) IS NULL
                     AND (NOT may_wait OR why_not_after_any(r, e.n - 1) IS NULL)
                     AND (NOT may_expire OR why_no_expiry(r.expires_at, r.scheduled_at) IS NULL) THEN r.kind END,
               COALESCE(r.args, '{}'), COALESCE(r.queue, 'default'), COALESCE(r.priority, 4),
               CASE WHEN marks[e.n] & 32 <> 0 THEN job_waits()
                    WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
               r.max_attempts, r.timeout, COALESCE(share_of(r.share_key), 0), r.tags, r.metadata, r.backoff, r.exclusive_key,
               r.share_key, r.second_key, r.grace,
               CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END + COALESCE(marks[e.n], 0)
               + CASE WHEN r.expires_at IS NULL THEN 0 ELSE 2048 END
          FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
         CROSS JOIN LATERAL jsonb_populate_record(NULL::job_request, e.request) AS r
         ORDER BY e.n
        RETURNING j.id
    )
    SELECT array_agg(m.id) INTO ids FROM made m;
    IF may_expire THEN
        PERFORM set_deadlines(jobs, ids);
    END IF;
    IF may_wait THEN
        PERFORM after_many(jobs, ids);
    END IF;
    RETURN QUERY SELECT unnest(ids);
EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
    PERFORM refuse_requests(jobs);
    RAISE;
END $$;

REVOKE ALL ON FUNCTION request_keys, unique_fields, is_too_long, why_no_queue, why_no_labels, why_refused, parts_are_known, why_not_unique,
    why_not_after, why_no_expiry, request_refusal, key_of_parts, request_key, ended_badly, key_holds, take_key,
    meet_holder, exclusive_flag, enqueue_request, keep_promises, enqueue, enqueue_unique, request_of, with_value, refuse_requests,
    enqueue_many_unique, enqueue_many FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue, enqueue_unique, enqueue_many_unique, enqueue_many TO claimd_admin, claimd_producer;
GRANT EXECUTE ON FUNCTION is_too_long TO claimd_admin, claimd_producer, claimd_worker; -- broken_rule() asks it
GRANT EXECUTE ON FUNCTION exclusive_flag TO claimd_admin, claimd_producer; -- job_checked() asks it
GRANT SELECT ON job_key TO claimd_admin, claimd_reader;

-- ---- down ----
DROP TABLE job_promise;
DROP FUNCTION keep_promises;
DROP FUNCTION enqueue_many, enqueue_many_unique, refuse_requests, with_value, request_of, enqueue_unique, enqueue, enqueue_request, meet_holder,
    take_key, key_holds, ended_badly, request_key, key_of_parts, request_refusal, why_no_expiry, why_not_after,
    why_not_unique, parts_are_known, why_refused,
    why_no_labels, why_no_queue, request_keys, unique_fields, exclusive_flag, is_too_long;
DROP TYPE job_request;
DROP TABLE job_key;

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
REVOKE ALL ON FUNCTION enqueue FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue TO claimd_admin, claimd_producer;
