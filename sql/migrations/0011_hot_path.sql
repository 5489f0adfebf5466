-- SPDX-License-Identifier: Apache-2.0
-- What each INSERT and each claim paid for, and need not. PostgreSQL parses the CHECKs of a table, and the conditions of its triggers,
-- from their stored text in every statement that writes to it. docs/decisions/0022-rules-in-triggers.md has the figures.

-- ---- the rules of a row of `job` ----
-- They were CHECKs, tested for every row that was claimed, too. `job_state` stays one, because each claim writes the state.

-- The first rule that a row breaks, by the name that the CHECK had; NULL: none. Its operators are bound here and not by the caller's
-- search_path, and the planner puts the body where it is called: neither SET nor SECURITY DEFINER is needed, which would cost more
-- than the rules.
CREATE FUNCTION broken_rule(kind text, queue text, priority smallint, share smallint, scheduled_at timestamptz, args jsonb,
                            max_attempts integer, timeout interval, tags text[], metadata jsonb, unique_key text, backoff text,
                            exclusive_key text, share_key text, flags smallint, second_key text, grace interval) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    -- A bounded regex ({0,63}) would halve the rate of inserts.
    WHEN NOT (kind ~ '^[a-z][a-z0-9_]*$' AND octet_length(kind) <= 64) THEN 'job_kind_name'
    WHEN NOT (queue = 'default' OR (queue ~ '^[a-z][a-z0-9_.-]*$' AND octet_length(queue) <= 64)) THEN 'job_queue_name'
    WHEN priority NOT BETWEEN 0 AND 9 THEN 'job_priority_range'
    WHEN share NOT BETWEEN 0 AND 16383 THEN 'job_share_range'
    -- Up to here a hint's score is exact; and no infinities.
    WHEN scheduled_at NOT BETWEEN '0001-01-01 00:00:00+00' AND '2286-01-01 00:00:00+00' THEN 'job_scheduled_at_range'
    WHEN claimd.is_too_long(args, 1048576) THEN 'job_args_size'
    WHEN num_nonnulls(max_attempts, timeout, tags, metadata, unique_key, backoff, exclusive_key, share_key, second_key, grace) = 0
        THEN NULL
    WHEN max_attempts < 1 THEN 'job_max_attempts_range'
    WHEN NOT (timeout > interval '0' AND timeout <= interval '366 days') THEN 'job_timeout_range'
    WHEN pg_column_size(tags[:]) > 8192 -- a copy, which is not compressed
        THEN 'job_tags_size'
    WHEN claimd.is_too_long(metadata, 65536) THEN 'job_metadata_size'
    WHEN octet_length(unique_key) NOT BETWEEN 1 AND 512 THEN 'job_unique_key_size'
    WHEN NOT claimd.backoff_is_valid(backoff) THEN 'job_backoff_valid'
    -- 2 among the flags says that the key is there: claims and ends of runs look at nothing else.
    WHEN octet_length(exclusive_key) NOT BETWEEN 1 AND 512 OR (exclusive_key IS NOT NULL AND flags & 2 = 0)
        THEN 'job_exclusive_key_form'
    WHEN octet_length(second_key) NOT BETWEEN 1 AND 512
         OR (second_key IS NOT NULL AND (exclusive_key IS NULL OR exclusive_key = second_key))
        THEN 'job_second_key_form'
    WHEN octet_length(share_key) NOT BETWEEN 1 AND 512 OR (share_key IS NOT NULL AND share = 0) THEN 'job_share_key_form'
    WHEN grace < interval '1 ms' OR grace > interval '1 hour' THEN 'job_grace_range'
END;

-- What each rule allows, for people.
CREATE FUNCTION rule_text(rule text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE rule
    WHEN 'job_kind_name' THEN 'kind: a lower-case letter, then lower-case letters, digits and _, at most 64 octets'
    WHEN 'job_queue_name' THEN 'queue: a lower-case letter, then lower-case letters, digits, _, . and -, at most 64 octets'
    WHEN 'job_priority_range' THEN 'priority: 0 (first) to 9'
    WHEN 'job_share_range' THEN 'share: 0 to 16383, see share_of()'
    WHEN 'job_scheduled_at_range' THEN 'scheduled_at: from the year 1 to before 2286'
    WHEN 'job_args_size' THEN 'args: at most 1048576 octets with a space behind each , and :, or 65536 with long numbers written out'
    WHEN 'job_max_attempts_range' THEN 'max_attempts: 1 or more'
    WHEN 'job_timeout_range' THEN 'timeout: more than 0, at most 366 days'
    WHEN 'job_tags_size' THEN 'tags: at most 8192 octets together, and 4 to 7 for each'
    WHEN 'job_metadata_size' THEN 'metadata: at most 65536 octets with a space behind each , and :'
    WHEN 'job_unique_key_size' THEN 'unique_key: 1 to 512 octets'
    WHEN 'job_backoff_valid' THEN 'backoff: see backoff_is_valid()'
    WHEN 'job_exclusive_key_form' THEN 'exclusive_key: 1 to 512 octets, and 2 among the flags'
    WHEN 'job_second_key_form' THEN 'second_key: 1 to 512 octets, beside an exclusive_key that is another one'
    WHEN 'job_share_key_form' THEN 'share_key: 1 to 512 octets, and share_of() it as share'
    WHEN 'job_grace_range' THEN 'grace: 1 ms to 1 hour'
END;

-- Runs with the path of the session that inserts, and once compiled in a session within functions of the owner as well: each name in it has a
-- schema, types and operators too.
CREATE FUNCTION job_checked() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    -- With an argument: but for the sizes of what an update leaves alone. Nobody may have tested it (a disabled trigger, a copy that
    -- came compressed), and a job must not be refused its retry for what it came with.
    all_of_it pg_catalog.bool := TG_NARGS OPERATOR(pg_catalog.=) 0;
    rule pg_catalog.text := claimd.broken_rule(NEW.kind, NEW.queue, NEW.priority, NEW.share, NEW.scheduled_at,
                                    CASE WHEN all_of_it THEN NEW.args END, NEW.max_attempts, NEW.timeout,
                                    CASE WHEN all_of_it THEN NEW.tags END, CASE WHEN all_of_it THEN NEW.metadata END,
                                    NEW.unique_key, NEW.backoff, NEW.exclusive_key, NEW.share_key, NEW.flags, NEW.second_key,
                                    NEW.grace);
BEGIN
    IF rule IS NULL THEN
        RETURN NEW;
    END IF;
    -- What a plain INSERT or COPY has left to us: they know nothing of flags. A second key without a first one, or the same twice, is one
    -- key, whoever gave it.
    IF pg_catalog.num_nonnulls(NEW.exclusive_key, NEW.second_key) OPERATOR(pg_catalog.>) 0
       AND TG_WHEN OPERATOR(pg_catalog.=) 'BEFORE' THEN
        IF NEW.exclusive_key IS NULL OR NEW.exclusive_key OPERATOR(pg_catalog.=) NEW.second_key THEN
            NEW.exclusive_key := COALESCE(NEW.exclusive_key, NEW.second_key);
            NEW.second_key := NULL;
        END IF;
        NEW.flags := NEW.flags OPERATOR(pg_catalog.|) claimd.exclusive_flag();
        rule := claimd.broken_rule(NEW.kind, NEW.queue, NEW.priority, NEW.share, NEW.scheduled_at, NEW.args, NEW.max_attempts,
                                   NEW.timeout, NEW.tags, NEW.metadata, NEW.unique_key, NEW.backoff, NEW.exclusive_key,
                                   NEW.share_key, NEW.flags, NEW.second_key, NEW.grace);
        IF rule IS NULL THEN
            RETURN NEW;
        END IF;
    END IF;
    -- As a CHECK says it, and what is allowed.
    RAISE EXCEPTION USING ERRCODE = 'check_violation', SCHEMA = 'claimd', TABLE = 'job', CONSTRAINT = rule,
        MESSAGE = pg_catalog.format('new row for relation "job" violates check constraint "%s" (%s)', rule, claimd.rule_text(rule));
END $$;

-- ---- rows that nobody has tested ----
-- They came before the rule of their args was what it is now, or while the trigger was disabled. A claim brings no args of a job with flag
-- 1024: its worker fetches them by themselves, and fails the job if no handler can be given them. Hundreds of them in one claim would
-- keep the worker from everything else. Returns how many were marked.
CREATE FUNCTION mark_too_long() RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    done bigint;
BEGIN
    UPDATE claimd.job j SET flags = j.flags | 1024
     WHERE j.flags & 1024 = 0
       AND EXISTS (SELECT FROM (VALUES (j.args, 1048576), (j.metadata, 65536)) AS v(value, most)
                    WHERE CASE WHEN pg_column_compression(v.value) IS NOT NULL THEN claimd.text_within(v.value, v.most) IS NULL
                               WHEN pg_column_size(v.value) <= 8192 THEN claimd.is_too_long(v.value, v.most) END);
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;

-- The text of such a value; NULL where it has more octets. It is not written out to see that: each number's digits are known within a
-- factor of four.
CREATE FUNCTION text_within(j jsonb, most integer) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tens numeric[] := '{1e8,1e32,1e128,1e512,1e2048,1e8192,1e32768}';
    digits integer[] := '{8,32,128,512,2048,8192,32768,131072}';
    longest bigint := (SELECT sum(scale(n.n) + digits[width_bucket(abs(n.n), tens) + 1])
                         FROM (SELECT p::numeric AS n FROM jsonb_path_query(j, 'strict $.** ? (@.type() == "number")') AS p) AS n);
BEGIN
    IF longest > 5 * most THEN
        RETURN NULL;
    END IF;
    RETURN CASE WHEN octet_length(j::text) <= most THEN j::text END;
END $$;

REVOKE ALL ON FUNCTION broken_rule, rule_text, job_checked, text_within, mark_too_long FROM PUBLIC;
GRANT EXECUTE ON FUNCTION broken_rule, rule_text TO claimd_admin, claimd_producer, claimd_worker;
GRANT EXECUTE ON FUNCTION text_within TO claimd_worker;

CREATE TRIGGER job_checked BEFORE INSERT ON job FOR EACH ROW EXECUTE FUNCTION job_checked();
-- After, because a trigger before updates would lock and log each row of each claim, even where it does not fire.
CREATE TRIGGER job_checked_again
    AFTER UPDATE OF kind, queue, priority, share, scheduled_at, max_attempts, timeout, unique_key, backoff, exclusive_key, share_key,
                    flags, second_key, grace
    ON job FOR EACH ROW EXECUTE FUNCTION job_checked('but sizes');
CREATE TRIGGER job_sizes_checked AFTER UPDATE OF args, tags, metadata ON job FOR EACH ROW EXECUTE FUNCTION job_checked();
ALTER TABLE job
    DROP CONSTRAINT job_kind_name, DROP CONSTRAINT job_queue_name, DROP CONSTRAINT job_priority_range,
    DROP CONSTRAINT job_share_range, DROP CONSTRAINT job_scheduled_at_range, DROP CONSTRAINT job_args_size,
    DROP CONSTRAINT job_metadata_size, DROP CONSTRAINT job_tags_size, DROP CONSTRAINT job_max_attempts_range,
    DROP CONSTRAINT job_timeout_range, DROP CONSTRAINT job_unique_key_size, DROP CONSTRAINT job_backoff_valid,
    DROP CONSTRAINT job_exclusive_key_form, DROP CONSTRAINT job_share_key_form;

-- ---- a job that is retried ----
-- Asked from its row in the history, which is marked when the job goes back to work, so that other INSERTs into `job` don't ask.
DROP TRIGGER job_again ON job;
CREATE TRIGGER job_again AFTER UPDATE OF retried_at ON job_history FOR EACH ROW WHEN (NEW.flags & 25 <> 0)
    EXECUTE FUNCTION job_again();

-- ---- NOTIFY ----
-- With no more rights than the session that inserts, and no search_path of its own: each costs as much as its work. So each name has a schema.
GRANT SELECT (hungry) ON cluster TO claimd_producer;
CREATE OR REPLACE FUNCTION job_inserted() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT c.hungry FROM claimd.cluster c) AND claimd.may_notify() THEN
        PERFORM pg_catalog.pg_notify('claimd', '');
    END IF;
    RETURN NULL;
END $$;

-- ---- part: alone ----
-- Writes out the args of every job: 10 s for some millions.
SELECT mark_too_long();

-- ---- down ----
ALTER TABLE job
    ADD CONSTRAINT job_kind_name CHECK (kind ~ '^[a-z][a-z0-9_]*$' AND octet_length(kind) <= 64),
    ADD CONSTRAINT job_queue_name CHECK (queue ~ '^[a-z][a-z0-9_.-]*$' AND octet_length(queue) <= 64),
    ADD CONSTRAINT job_priority_range CHECK (priority BETWEEN 0 AND 9),
    ADD CONSTRAINT job_scheduled_at_range CHECK (scheduled_at BETWEEN '0001-01-01 00:00:00+00' AND '2286-01-01 00:00:00+00'),
    ADD CONSTRAINT job_args_size CHECK (pg_column_size(args) <= 2000 OR octet_length(args::text) <= 1048576),
    ADD CONSTRAINT job_metadata_size CHECK (pg_column_size(metadata) <= 2000 OR octet_length(metadata::text) <= 65536),
    ADD CONSTRAINT job_tags_size CHECK (pg_column_size(tags) <= 8192),
    ADD CONSTRAINT job_max_attempts_range CHECK (max_attempts >= 1),
    ADD CONSTRAINT job_timeout_range CHECK (timeout > interval '0' AND timeout <= interval '366 days'),
    ADD CONSTRAINT job_unique_key_size CHECK (octet_length(unique_key) BETWEEN 1 AND 512),
    ADD CONSTRAINT job_backoff_valid CHECK (backoff_is_valid(backoff)),
    ADD CONSTRAINT job_exclusive_key_form
        CHECK (exclusive_key IS NULL OR (octet_length(exclusive_key) BETWEEN 1 AND 512 AND flags & 2 <> 0)),
    ADD CONSTRAINT job_share_key_form
        CHECK (share_key IS NULL OR (octet_length(share_key) BETWEEN 1 AND 512 AND share > 0)),
    ADD CONSTRAINT job_share_range CHECK (share BETWEEN 0 AND 16383);
DROP TRIGGER job_checked ON job;
DROP TRIGGER job_checked_again ON job;
DROP TRIGGER job_sizes_checked ON job;
DROP FUNCTION job_checked, rule_text, broken_rule, text_within, mark_too_long;
UPDATE job SET flags = flags & ~1024 WHERE flags & 1024 <> 0;

DROP TRIGGER job_again ON job_history;
CREATE TRIGGER job_again AFTER INSERT ON job FOR EACH ROW WHEN (NEW.flags & 25 <> 0 AND NEW.generation > 0)
    EXECUTE FUNCTION job_again();

REVOKE SELECT (hungry) ON cluster FROM claimd_producer;
CREATE OR REPLACE FUNCTION job_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT hungry FROM cluster) THEN
        PERFORM pg_notify('claimd', '');
    END IF;
    RETURN NULL;
END $$;
