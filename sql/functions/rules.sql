-- SPDX-License-Identifier: Apache-2.0
-- The rules of a row of `job`: docs/decisions/0022-rules-in-triggers.md.

-- True if a value is too long as text. A number that is stored in a few bytes may be long when written out: 1e131071 takes 16. So
-- the text of every value is made, because no cheaper test is sound: numbers can't be compared by their scale, and examining each
-- number takes longer than making the text (0.2 us for 60 bytes, 2.5 us per kB). A producer of 1e131071 pays for its text once.
-- Claims return many args at once, so a value whose text is more than 32 times as long as its stored form may have only 65536 bytes;
-- any double, written out, is at most 21 times as long. A value that arrives compressed is stored compressed and never comes with a
-- claim, so only `most` applies to it.
CREATE OR REPLACE FUNCTION is_too_long(j jsonb, most integer) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN octet_length(j::text) > CASE WHEN pg_column_compression(j) IS NULL
                                    THEN LEAST(most, GREATEST(65536, 32 * pg_column_size(j))) ELSE most END;

-- True if `backoff` has the form that model/backoff.h describes; NULL for NULL.
-- The setting keeps the function from being inlined: otherwise the planner reads its body for each INSERT into `job`, which took a third of
-- that statement's time.
CREATE OR REPLACE FUNCTION backoff_is_valid(backoff text) RETURNS boolean
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

CREATE OR REPLACE FUNCTION why_no_backoff(backoff text) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN NOT backoff_is_valid(backoff)
            THEN 'backoff: must be exponential:15s:1h, linear:10s:1h, fixed:30s or list:1s,5s,1m (at most 20), each with ~10% '
                 'behind it or not, at most 100 bytes and 366 days' END;

CREATE OR REPLACE FUNCTION why_no_grace(grace interval) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN grace < interval '1 ms' OR grace > interval '1 hour' THEN 'grace: must be 1 ms to 1 hour' END;

-- Returns what is wrong with the name of a queue, or NULL if it is valid. Inlined into its callers, like the next function.
CREATE OR REPLACE FUNCTION why_no_queue(queue text) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN queue IS NULL OR queue !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(queue) > 64
            THEN 'queue: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 bytes' END;

CREATE OR REPLACE FUNCTION why_no_kind(kind text) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN kind IS NULL OR kind !~ '^[a-z][a-z0-9_]*$' OR octet_length(kind) > 64
            THEN 'kind: must match ^[a-z][a-z0-9_]*$ and have at most 64 bytes' END;

-- Returns what is wrong with tags and metadata, or NULL if they are valid. Enqueueing, edits, schedules and batches refuse an empty
-- tag, because no filter would find it; a plain INSERT does not.
CREATE OR REPLACE FUNCTION why_no_labels(tags text[], metadata jsonb) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(tags) > 1
            THEN 'tags: must be a list of texts'
            WHEN array_position(tags, NULL) IS NOT NULL
            THEN 'tags: must be a list of texts, without NULL'
            WHEN '' = ANY (tags)
            THEN 'tags: must be a list of texts, none of them empty'
            WHEN jsonb_typeof(metadata) <> 'object'
            THEN 'metadata: must be a JSON object' END;

-- Returns the first rule that a row breaks, by the name of the former CHECK, or NULL if it breaks none. Its operators are bound when
-- it is created, not by the caller's search_path, and the planner inlines its body. So it needs neither SET nor SECURITY DEFINER,
-- which would cost more than the rules.
CREATE OR REPLACE FUNCTION broken_rule(kind text, queue text, priority smallint, share smallint, scheduled_at timestamptz, args jsonb,
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
    -- {flag.key} among the flags says that the key is there: claims and ends of runs look at nothing else.
    WHEN octet_length(exclusive_key) NOT BETWEEN 1 AND 512 OR (exclusive_key IS NOT NULL AND flags & {flag.key} = 0)
        THEN 'job_exclusive_key_form'
    WHEN octet_length(second_key) NOT BETWEEN 1 AND 512
         OR (second_key IS NOT NULL AND (exclusive_key IS NULL OR exclusive_key = second_key))
        THEN 'job_second_key_form'
    WHEN octet_length(share_key) NOT BETWEEN 1 AND 512 OR (share_key IS NOT NULL AND share = 0) THEN 'job_share_key_form'
    WHEN grace < interval '1 ms' OR grace > interval '1 hour' THEN 'job_grace_range'
END;

-- Returns what a rule allows, for people.
CREATE OR REPLACE FUNCTION rule_text(rule text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE rule
    WHEN 'job_kind_name' THEN 'kind: a lower-case letter, then lower-case letters, digits and _, at most 64 bytes'
    WHEN 'job_queue_name' THEN 'queue: a lower-case letter, then lower-case letters, digits, _, . and -, at most 64 bytes'
    WHEN 'job_priority_range' THEN 'priority: 0 (first) to 9'
    WHEN 'job_share_range' THEN 'share: 0 to 16383, see share_of()'
    WHEN 'job_scheduled_at_range' THEN 'scheduled_at: from the year 1 to before 2286'
    WHEN 'job_args_size' THEN 'args: at most 1048576 bytes with a space behind each , and :, or 65536 with long numbers written out'
    WHEN 'job_max_attempts_range' THEN 'max_attempts: 1 or more'
    WHEN 'job_timeout_range' THEN 'timeout: more than 0, at most 366 days'
    WHEN 'job_tags_size' THEN 'tags: at most 8192 bytes together, and 4 to 7 for each'
    WHEN 'job_metadata_size' THEN 'metadata: at most 65536 bytes with a space behind each , and :'
    WHEN 'job_unique_key_size' THEN 'unique_key: 1 to 512 bytes'
    WHEN 'job_backoff_valid' THEN 'backoff: see backoff_is_valid()'
    WHEN 'job_exclusive_key_form' THEN 'exclusive_key: 1 to 512 bytes, and {flag.key} among the flags'
    WHEN 'job_second_key_form' THEN 'second_key: 1 to 512 bytes, beside an exclusive_key that is another one'
    WHEN 'job_share_key_form' THEN 'share_key: 1 to 512 bytes, and share_of() it as share'
    WHEN 'job_grace_range' THEN 'grace: 1 ms to 1 hour'
END;

-- Returns the flag of jobs with an exclusive key. Raises CL003 while programs built for an older schema may join: they would claim
-- such jobs as if they had no key.
CREATE OR REPLACE FUNCTION exclusive_flag() RETURNS smallint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM require_program(2);
    RETURN {flag.key};
END $$;

-- Returns the share of a tenant, which determines its lane. Programs that were built for version 1 know shares only up to 63. The
-- function has neither SECURITY DEFINER nor a search_path, each of which would cost as much as its work, because bulk inserts call it
-- for each row. So all names in it are qualified, and none is looked up by the caller's path.
CREATE OR REPLACE FUNCTION share_of(key text) RETURNS smallint
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN 1 OPERATOR(pg_catalog.+)
           ((pg_catalog.hashtextextended(key, 0) OPERATOR(pg_catalog.&) 9223372036854775807) OPERATOR(pg_catalog.%)
            CASE WHEN (SELECT c.oldest_program OPERATOR(pg_catalog.<) 2 FROM claimd.cluster c) THEN 63 ELSE 16383 END);
END $$;

-- Runs with the search_path of the inserting session. PostgreSQL compiles it once per session, and functions of the owner then run
-- the same compiled form. So all names in it are qualified, also those of types and operators.
CREATE OR REPLACE FUNCTION job_checked() RETURNS trigger
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

CREATE OR REPLACE FUNCTION job_inserted() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT c.hungry FROM claimd.cluster c) AND claimd.may_notify() THEN
        PERFORM pg_catalog.pg_notify('claimd', '');
    END IF;
    RETURN NULL;
END $$;

-- Marks jobs whose args or metadata are longer than the rules allow: they were stored before the present rule, or while the trigger was
-- disabled. A claim returns no args of a job with {flag.long}: its worker fetches them separately, and fails the job if they can't be
-- given to any handler. Hundreds of such args in one claim would keep the worker from all other work. Returns how many jobs were marked.
CREATE OR REPLACE FUNCTION mark_too_long() RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    done bigint;
BEGIN
    UPDATE claimd.job j SET flags = j.flags | {flag.long}
     WHERE j.flags & {flag.long} = 0
       AND EXISTS (SELECT FROM (VALUES (j.args, 1048576), (j.metadata, 65536)) AS v(value, most)
                    WHERE CASE WHEN pg_column_compression(v.value) IS NOT NULL THEN claimd.text_within(v.value, v.most) IS NULL
                               WHEN pg_column_size(v.value) <= 8192 THEN claimd.is_too_long(v.value, v.most) END);
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;

-- Returns the text of such a value, or NULL if it has more than `most` bytes. A text that is far too long is not written out to find
-- that out: the number of digits of each number is known within a factor of four.
CREATE OR REPLACE FUNCTION text_within(j jsonb, most integer) RETURNS text
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

REVOKE ALL ON FUNCTION is_too_long, backoff_is_valid, why_no_backoff, why_no_grace, why_no_queue, why_no_kind,
    why_no_labels, broken_rule, rule_text, exclusive_flag, share_of, job_checked, job_inserted, mark_too_long,
    text_within FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION is_too_long, backoff_is_valid, broken_rule, rule_text
    TO claimd_admin, claimd_producer, claimd_worker;
GRANT EXECUTE ON FUNCTION exclusive_flag, share_of TO claimd_admin, claimd_producer;
GRANT EXECUTE ON FUNCTION share_of TO claimd_reader; -- in the view maps
GRANT EXECUTE ON FUNCTION text_within TO claimd_worker;
