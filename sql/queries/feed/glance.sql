-- SPDX-License-Identifier: Apache-2.0
-- feed_read without gaps: the same rows of the same ranges ($1-$8). Most reads are for a row or two, and here the executor has two scans
-- to start instead of five.
-- Indexes: job_feed; for jobs with a key, key_waiting_pkey. No locks.
-- params: text[], int8[], int8[], int8[], int8[], int8[], int8[], int8[]
SELECT 0 AS part, 0::int8 AS n, 0::int8 AS id, now() AS at, NULL::text AS name, false AS ok
UNION ALL
SELECT j.part, r.n, j.id, j.at, j.name, j.ok
  FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) WITH ORDINALITY
       AS r(queue, priority, share, after_us, after_id, to_us, rows_max, deep, n)
 CROSS JOIN LATERAL (
       (SELECT 1 AS part, id, ready_at AS at, kind AS name, {wants_hint} AS ok
          FROM claimd.job f
         WHERE queue = r.queue AND priority = r.priority::int2 AND share = r.share::int2
           AND (ready_at, id) > (timestamptz 'epoch' + r.after_us * interval '1 microsecond', r.after_id)
           AND ready_at <= CASE WHEN r.to_us = 0 THEN now()
                                ELSE LEAST(now(), timestamptz 'epoch' + r.to_us * interval '1 microsecond') END
         ORDER BY ready_at, id LIMIT r.rows_max)
        UNION ALL
       (SELECT 2, 0, ready_at, NULL, false FROM claimd.job
         WHERE r.to_us = 0 AND queue = r.queue AND priority = r.priority::int2 AND share = r.share::int2 AND ready_at > now()
         ORDER BY ready_at LIMIT 1)) j
