-- SPDX-License-Identifier: Apache-2.0
-- For queues that are walked in laps: some rows of each tenant, from the beginning of its lane, for the tenants after `after_share`.
-- Laps ($1-$8): range, queue, priority, after_share, shares, rows of each, deep, served kinds (separated by commas). Returns a row
-- per row of `job`, in order, or one with id 0 for a tenant that has none to feed. Unless the lap is deep, jobs that wait for their
-- key are left out: they get their hints when the key becomes free, and would otherwise hide the other jobs of their tenant. Tenants
-- are found by jumping from the end of one to the next.
-- Index of `job`: job_feed only; no locks.
-- params: int8[], text[], int8[], int8[], int8[], int8[], int8[], text[]
WITH RECURSIVE share (depth, n, queue, priority, share, shares_max, each_max, is_deep, kinds) AS (
    SELECT 0, n, queue COLLATE "C", priority::int2, after_share::int2, shares_max, each_max, deep <> 0, string_to_array(kinds, ',')
      FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS l(n, queue, priority, after_share, shares_max, each_max, deep, kinds)
    UNION ALL
    SELECT s.depth + 1, s.n, s.queue, s.priority, j.share, s.shares_max, s.each_max, s.is_deep, s.kinds
      FROM share s
     CROSS JOIN LATERAL (SELECT share FROM claimd.job
                          WHERE queue = s.queue AND priority = s.priority AND share > s.share
                          ORDER BY share LIMIT 1) j
     WHERE s.depth < s.shares_max
)
SELECT s.n, s.share::int8 AS share, COALESCE(j.id, 0) AS id, COALESCE(j.ready_at, now()) AS at, j.kind AS name
  FROM share s
  LEFT JOIN LATERAL (SELECT id, ready_at, kind FROM claimd.job f
                      WHERE queue = s.queue AND priority = s.priority AND share = s.share AND ready_at <= now()
                        AND state = 'available' AND kind = ANY (s.kinds)
                        AND (s.is_deep OR exclusive_key IS NULL
                             OR NOT EXISTS (SELECT FROM claimd.key_waiting w
                                             WHERE w.key = f.exclusive_key COLLATE "C"
                                               AND w.other_key = COALESCE(f.second_key, '') COLLATE "C" AND w.priority = f.priority
                                               AND w.ready_at = f.ready_at AND w.job_id = f.id))
                      ORDER BY ready_at, id LIMIT s.each_max) j ON true
 WHERE s.depth > 0
