-- SPDX-License-Identifier: Apache-2.0
-- Stores how long the runs of a worker ($1) took, by queue ($2) and kind ($3): for how many µs they have been counted ($4), how many
-- runs ($5), their total time in µs ($6), and how many in each bucket ($7, arrays as texts). Stores nothing if the worker's row is gone.
-- params: uuid, text[], text[], int8[], int8[], int8[], text[]
INSERT INTO claimd.run_length AS r (worker_id, queue, kind, since, runs, run_us, buckets)
SELECT w.worker_id, s.queue, s.kind, clock_timestamp() - s.for_us * interval '1 microsecond', s.runs, s.run_us, s.buckets::integer[]
  FROM unnest($2, $3, $4, $5, $6, $7) AS s(queue, kind, for_us, runs, run_us, buckets)
 CROSS JOIN LATERAL (SELECT worker_id FROM claimd.worker WHERE worker_id = $1) AS w
    ON CONFLICT (worker_id, queue, kind) DO UPDATE
   SET since = excluded.since, runs = excluded.runs, run_us = excluded.run_us, buckets = excluded.buckets,
       saved_at = excluded.saved_at
