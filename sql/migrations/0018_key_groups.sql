-- SPDX-License-Identifier: Apache-2.0
-- Limits for all keys that begin alike: with one for customer:*, each key that begins with customer: has its own. And limits of kinds.
-- Limited keys without a pattern cost nothing more. What operators say, and what claims do by it, is in 0007 and 0017. The guide:
-- docs/guide/limits.md.

CREATE TABLE key_group (
    prefix text COLLATE "C" NOT NULL,
    max_running integer, -- of each of its keys; NULL: one
    rate double precision, -- starts per second of each; NULL: any
    CONSTRAINT key_group_pkey PRIMARY KEY (prefix),
    CONSTRAINT key_group_prefix CHECK (prefix ~ '[:/]$' AND octet_length(prefix) <= 511),
    CONSTRAINT key_group_range CHECK (max_running BETWEEN 1 AND 1000),
    CONSTRAINT key_group_rate_range CHECK (rate > 0 AND rate <= 100000)
);

-- Of those that a key begins with the longest.
CREATE FUNCTION group_of(key text) RETURNS key_group
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT g.* FROM key_group g WHERE starts_with(group_of.key, g.prefix) ORDER BY length(g.prefix) DESC LIMIT 1
$$;

-- By the claim, before it looks at limits: rows for those of the jobs' keys that are in a group and have none. A bucket starts full. In
-- the order of the keys: of two claims with the same new ones one waits for the other's commit.
CREATE FUNCTION group_keys(ids bigint[]) RETURNS void
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

-- Rows that claims have made become what their groups say now.
CREATE FUNCTION follow_groups(prefix text) RETURNS void
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

-- Of keys that nobody uses the rows go, once their bucket is full: as which one without a row starts.
CREATE FUNCTION tidy_groups() RETURNS void
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

-- The prefix of a pattern, such as customer:* or a/b/*; NULL: it is a key.
CREATE FUNCTION prefix_of(key text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN key ~ '[:/]\*$' THEN left(key, -1) END;

CREATE FUNCTION why_no_rate(starts integer, per interval) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN starts NOT BETWEEN 1 AND 100000
            THEN 'starts: must be 1 to 100000, or NULL for no limit'
            WHEN (per >= interval '1 s' AND per <= interval '31 days') IS NOT TRUE
            THEN 'per: must be 1 second to 31 days' END;

CREATE FUNCTION group_is_set(prefix text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM key_group g WHERE g.prefix = group_is_set.prefix AND g.max_running IS NULL AND g.rate IS NULL;
    PERFORM follow_groups(prefix);
END $$;

-- ---- limits of kinds ----
-- By the claim, before it looks at limits: the jobs of a kind with a limit get the key of their kind, kind:NAME, beside one that they have.
-- It is what the limit holds for, and 4096 among the flags says that the job did not come with it: it goes with the limit. A job with two
-- keys of its own has no room for it, and starts as these let it.
CREATE FUNCTION key_kinds(ids bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    UPDATE job j
       SET exclusive_key = n.first_key, second_key = n.second_key,
           flags = CASE WHEN n.is_limited THEN j.flags | 4098
                        WHEN n.first_key IS NULL THEN j.flags & ~4098
                        ELSE j.flags & ~4096 END
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
                        ELSE o.flags & 4096 <> 0 END
               FOR NO KEY UPDATE OF o SKIP LOCKED) AS n
     WHERE j.id = n.id;
END $$;

REVOKE ALL ON FUNCTION key_kinds, why_no_rate, group_of, group_keys, follow_groups, tidy_groups, prefix_of, group_is_set FROM PUBLIC;
GRANT EXECUTE ON FUNCTION group_of TO claimd_admin, claimd_reader;
GRANT SELECT ON key_group TO claimd_admin, claimd_reader;

-- ---- down ----
DROP FUNCTION key_kinds, why_no_rate, group_is_set, prefix_of, tidy_groups, follow_groups, group_keys, group_of;
DROP TABLE key_group;
