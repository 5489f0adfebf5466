-- SPDX-License-Identifier: Apache-2.0
-- Reads back a claim whose answer was lost: those of the ids that run under this worker ($2) with a fence above all that it
-- knew when it sent the claim ($3). Same columns as job_claim_limited; (0,0): whatever its fence holds.
-- params: int8[], uuid, int8
SELECT id, fence, attempt, crashes, kind, queue, priority, ready_at, attempted_at, max_attempts,
       (EXTRACT(EPOCH FROM timeout) * 1000000)::bigint AS timeout_us,
       backoff, generation, created_at, array_to_json(tags)::text AS tags,
       CASE WHEN pg_column_size(metadata) <= 8192 AND flags & {flag.long} = 0 THEN metadata::text END AS metadata,
       CASE WHEN pg_column_size(args) <= 8192 AND pg_column_compression(args) IS NULL
             AND (metadata IS NULL OR pg_column_size(metadata) <= 8192) AND flags & {flag.waits|checkpoint|long} = 0
            THEN args::text END AS args, flags, (EXTRACT(EPOCH FROM grace) * 1000000)::bigint AS grace_us,
       tid '(0,0)' AS key_row, tid '(0,0)' AS place, NULL::tid AS second_row
  FROM claimd.job
 WHERE id = ANY ($1) AND state = 'running' AND worker_id = $2 AND fence > $3
