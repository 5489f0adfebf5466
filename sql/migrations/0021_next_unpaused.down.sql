-- SPDX-License-Identifier: Apache-2.0
CREATE OR REPLACE FUNCTION next_of_keys(keys text[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT n.* FROM (SELECT DISTINCT u.key FROM unnest(keys) AS u(key)) AS k
     CROSS JOIN LATERAL (
        SELECT f.* FROM generate_series(0, 9) AS p
         CROSS JOIN LATERAL (
            SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j
             WHERE j.exclusive_key = k.key AND j.priority = p AND j.ready_at <= statement_timestamp() AND j.state = 'available'
               AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
             ORDER BY j.ready_at, j.id LIMIT 1) AS f
         ORDER BY f.priority LIMIT 1) AS n
$$;
