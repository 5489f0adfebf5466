-- SPDX-License-Identifier: Apache-2.0
-- The limits of keys: how many jobs may run at a time, and start per second, for one key or for all keys with a prefix.

-- Limits how many jobs with the key, or with each key of the pattern, run at a time. NULL removes the setting: then the limit is 1,
-- or that of a pattern. If a key has a setting of its own, nothing of its pattern applies to it.
CREATE OR REPLACE FUNCTION limit_key(key text, max_running integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    begins text := prefix_of(key);
BEGIN
    IF (octet_length(key) BETWEEN 1 AND 512) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'key: must have 1 to 512 octets';
    ELSIF max_running NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'max_running: must be 1 to 1000, or NULL for 1';
    END IF;
    IF begins IS NOT NULL THEN
        INSERT INTO key_group AS g (prefix, max_running) VALUES (begins, limit_key.max_running)
            ON CONFLICT ON CONSTRAINT key_group_pkey DO UPDATE SET max_running = excluded.max_running;
        PERFORM group_is_set(begins);
    ELSIF max_running > 1 OR (max_running = 1 AND (group_of(key)).prefix IS NOT NULL) THEN
        INSERT INTO key_limit AS k (key, max_running) VALUES (limit_key.key, limit_key.max_running)
            ON CONFLICT ON CONSTRAINT key_limit_pkey
            DO UPDATE SET max_running = excluded.max_running, rate = CASE WHEN k.is_grouped THEN NULL ELSE k.rate END, is_grouped = false;
    ELSE
        UPDATE key_limit k SET max_running = 1 WHERE k.key = limit_key.key AND NOT k.is_grouped;
        DELETE FROM key_limit k WHERE k.key = limit_key.key AND NOT k.is_grouped AND k.rate IS NULL;
    END IF;
END $$;

-- Limits the starts of jobs with the key, or with each key of the pattern, to `starts` in each `per`, on average; starts that were not
-- used in the last two seconds may be made up for. NULL removes the setting. limit_key() sets how many of these jobs run at a time.
CREATE OR REPLACE FUNCTION limit_key_rate(key text, starts integer, per interval DEFAULT '1 s') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE WHEN (octet_length(key) BETWEEN 1 AND 512) IS NOT TRUE THEN 'key: must have 1 to 512 octets'
                       ELSE why_no_rate(starts, per) END;
    begins text := prefix_of(key);
    per_second double precision := starts / NULLIF(extract(epoch FROM per), 0);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    IF begins IS NOT NULL THEN
        INSERT INTO key_group AS g (prefix, rate) VALUES (begins, per_second)
            ON CONFLICT ON CONSTRAINT key_group_pkey DO UPDATE SET rate = excluded.rate;
        PERFORM group_is_set(begins);
    ELSIF per_second IS NULL THEN
        UPDATE key_limit k SET rate = NULL WHERE k.key = limit_key_rate.key AND NOT k.is_grouped;
        DELETE FROM key_limit k WHERE k.key = limit_key_rate.key AND NOT k.is_grouped AND k.max_running = 1;
    ELSE
        INSERT INTO key_limit AS k (key, rate) VALUES (limit_key_rate.key, per_second)
            ON CONFLICT ON CONSTRAINT key_limit_pkey
            DO UPDATE SET rate = excluded.rate, max_running = CASE WHEN k.is_grouped THEN 1 ELSE k.max_running END, is_grouped = false;
    END IF;
END $$;

-- Returns the group with the longest prefix that the key begins with; NULLs if there is none.
CREATE OR REPLACE FUNCTION group_of(key text) RETURNS key_group
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT g.* FROM key_group g WHERE starts_with(group_of.key, g.prefix) ORDER BY length(g.prefix) DESC LIMIT 1
$$;

-- Called by the claim before it looks at limits: inserts rows for those of the jobs' keys that are in a group and have no row. A
-- bucket starts full. Inserts in the order of the keys: of two claims with the same new keys, one waits for the other's commit.
CREATE OR REPLACE FUNCTION group_keys(ids bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    INSERT INTO key_limit (key, max_running, rate, tokens, is_grouped)
    SELECT k.key, COALESCE(g.max_running, 1), g.rate, COALESCE(1 + 2 * g.rate, 1), true
      FROM (SELECT DISTINCT u.key FROM job j CROSS JOIN LATERAL (VALUES (j.exclusive_key), (j.second_key)) AS u(key)
             WHERE j.id = ANY (ids) AND u.key IS NOT NULL
               AND (SELECT l.max_running FROM key_limit l WHERE l.key = u.key) IS NULL) AS k
     CROSS JOIN LATERAL group_of(k.key) AS g
     WHERE g.max_running > 1 OR g.rate IS NOT NULL
     ORDER BY k.key COLLATE "C"
        ON CONFLICT DO NOTHING;
END $$;

-- Gives the rows that claims have inserted for keys in groups the current limits of their groups.
CREATE OR REPLACE FUNCTION follow_groups(prefix text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    UPDATE key_limit l SET max_running = COALESCE(n.max_running, 1), rate = n.rate
      FROM (SELECT k.key, g.max_running, g.rate
              FROM key_limit k
             CROSS JOIN LATERAL group_of(k.key) AS g
             WHERE k.is_grouped AND starts_with(k.key, follow_groups.prefix)
               AND (k.max_running, k.rate) IS DISTINCT FROM (COALESCE(g.max_running, 1), g.rate)) AS n
     WHERE l.key = n.key AND l.is_grouped;
END $$;

-- Updates the rows of keys in groups, and deletes those of unused keys once their bucket is full: a key without a row
-- starts with a full bucket, too.
CREATE OR REPLACE FUNCTION tidy_groups() RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    PERFORM follow_groups('');
    DELETE FROM key_limit
     WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM key_limit l
                              WHERE l.is_grouped AND (l.rate IS NULL OR key_tokens(l, clock_timestamp()) >= 1 + 2 * l.rate)
                                AND NOT EXISTS (SELECT FROM job j WHERE j.exclusive_key = l.key AND j.second_key IS NULL)
                                AND NOT EXISTS (SELECT FROM key_waiting w WHERE w.key = l.key)
                                AND NOT EXISTS (SELECT FROM exclusive e WHERE e.key = l.key)
                                FOR UPDATE SKIP LOCKED));
END $$;

-- Returns the prefix of a pattern, such as customer:* or a/b/*, or NULL if this is a key.
CREATE OR REPLACE FUNCTION prefix_of(key text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN key ~ '[:/]\*$' THEN left(key, -1) END;

CREATE OR REPLACE FUNCTION group_is_set(prefix text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM key_group g WHERE g.prefix = group_is_set.prefix AND g.max_running IS NULL AND g.rate IS NULL;
    PERFORM follow_groups(prefix);
END $$;

-- Called by the claim before it looks at limits: gives the jobs of a kind with a limit the key of their kind, kind:NAME, in addition
-- to a key of their own. The limit of the kind is the limit of that key. {flag.kind} shows that the job was not enqueued with the
-- key, which is removed with the limit. A job with two keys of its own has no room for it, and starts as these permit.
CREATE OR REPLACE FUNCTION key_kinds(ids bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    UPDATE job j
       SET exclusive_key = n.first_key, second_key = n.second_key,
           flags = CASE WHEN n.is_limited THEN j.flags | {flag.key|kind}
                        WHEN n.first_key IS NULL THEN j.flags & ~{flag.key|kind}
                        ELSE j.flags & ~{flag.kind} END
      FROM (SELECT o.id, k.limited AS is_limited,
                   CASE WHEN k.limited THEN COALESCE(o.exclusive_key, 'kind:' || o.kind)
                        WHEN o.exclusive_key = 'kind:' || o.kind THEN o.second_key
                        ELSE o.exclusive_key END AS first_key,
                   CASE WHEN k.limited AND o.exclusive_key IS NOT NULL THEN 'kind:' || o.kind
                        WHEN NOT k.limited AND o.exclusive_key <> 'kind:' || o.kind
                        THEN NULLIF(o.second_key, 'kind:' || o.kind) END AS second_key
              FROM job o
             CROSS JOIN LATERAL (SELECT COALESCE((SELECT t.limited FROM kind t WHERE t.name = o.kind), false) AS limited) AS k
             WHERE o.id = ANY (ids) AND o.state = 'available'
               AND CASE WHEN k.limited THEN o.second_key IS NULL AND o.exclusive_key IS DISTINCT FROM 'kind:' || o.kind
                        ELSE o.flags & {flag.kind} <> 0 END
               FOR NO KEY UPDATE OF o SKIP LOCKED) AS n
     WHERE j.id = n.id;
END $$;

REVOKE ALL ON FUNCTION limit_key, limit_key_rate, group_of, group_keys, follow_groups, tidy_groups, prefix_of,
    group_is_set, key_kinds FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION limit_key, limit_key_rate TO claimd_admin;
GRANT EXECUTE ON FUNCTION group_of TO claimd_admin, claimd_reader;
