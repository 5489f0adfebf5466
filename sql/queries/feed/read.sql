-- SPDX-License-Identifier: Apache-2.0
-- One read of the queue, in one statement and one round trip. Rows by `part`:
--   0: at = now()
--   1: a row of range `n`, in order; ok = it wants a hint
--   2: at = when the first row of range `n` that is not due yet falls due
--   3: a lane that was found in a gap: name = its queue, id = 16384 · priority + share
-- Ranges ($1-$8): queue, priority, share, after (time in µs, id), to (time in µs, 0 = now), rows, deep. Rows that are not due are not
-- read.
-- Gaps between the known lanes of a queue ($9-$13), by form: 0 = shares of a priority, 1 = priorities, 2 = everything after a priority
-- and share. The read finds all lanes in a gap, up to $14 in all, by jumping from the end of one to the next (a loose index scan). It
-- does not walk known lanes to find others, because their dead entries would cost time again and again. The conditions are by column,
-- because a scan does not stop at the upper end of a row comparison.
-- Indexes: job_feed; for jobs with a key, key_waiting_pkey. No locks. A walk is bounded by rows, not by available rows.
-- params: text[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], int8[], text[], int8[], int8[], int8[], int8
WITH RECURSIVE range AS (
    SELECT n, queue, priority::int2, share::int2, timestamptz 'epoch' + after_us * interval '1 microsecond' AS after_at, after_id,
           CASE WHEN to_us = 0 THEN now()
                ELSE LEAST(now(), timestamptz 'epoch' + to_us * interval '1 microsecond') END AS to_at, to_us, rows_max, deep
      FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) WITH ORDINALITY
           AS r(queue, priority, share, after_us, after_id, to_us, rows_max, deep, n)
), lane (depth, queue, priority, share, priority_hi, share_hi) AS (
    SELECT 0, queue COLLATE "C", (CASE form WHEN 1 THEN lo ELSE priority END)::int2,
           (CASE form WHEN 1 THEN 16384 ELSE lo END)::int2,
           (CASE form WHEN 0 THEN 0 WHEN 1 THEN hi ELSE 10 END)::int2,
           (CASE form WHEN 0 THEN hi WHEN 1 THEN 0 ELSE 16384 END)::int2
      FROM unnest($9, $10, $11, $12, $13) AS g(form, queue, priority, lo, hi)
    UNION ALL
    SELECT l.depth + 1, l.queue, j.priority, j.share, l.priority_hi,
           CASE WHEN j.priority = l.priority THEN l.share_hi ELSE 16384::int2 END
      FROM lane l
     CROSS JOIN LATERAL (
           (SELECT priority, share FROM claimd.job
             WHERE queue = l.queue AND priority = l.priority AND share > l.share AND share < l.share_hi
             ORDER BY share LIMIT 1)
            UNION ALL
           (SELECT priority, share FROM claimd.job
             WHERE queue = l.queue AND priority > l.priority AND priority < l.priority_hi
             ORDER BY priority, share LIMIT 1)
            LIMIT 1) j
)
SELECT 0 AS part, 0::int8 AS n, 0::int8 AS id, now() AS at, NULL::text AS name, false AS ok
UNION ALL
SELECT 1, r.n, j.id, j.ready_at, j.kind, j.ok
  FROM range r
 CROSS JOIN LATERAL (SELECT id, ready_at, kind, {wants_hint} AS ok
                       FROM claimd.job f
                      WHERE queue = r.queue AND priority = r.priority AND share = r.share
                        AND (ready_at, id) > (r.after_at, r.after_id) AND ready_at <= r.to_at
                      ORDER BY ready_at, id LIMIT r.rows_max) j
UNION ALL
SELECT 2, r.n, 0, j.ready_at, NULL, false
  FROM range r
 CROSS JOIN LATERAL (SELECT ready_at FROM claimd.job
                      WHERE queue = r.queue AND priority = r.priority AND share = r.share AND ready_at > now()
                      ORDER BY ready_at LIMIT 1) j
 WHERE r.to_us = 0
UNION ALL
(SELECT 3, 0, 16384 * priority::int8 + share, now(), queue, false
  FROM lane
 WHERE depth > 0
 LIMIT $14)
