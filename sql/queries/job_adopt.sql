-- SPDX-License-Identifier: Apache-2.0
-- Reads back a claim whose answer was lost: those of the ids that run under this worker ($2) with a fence above all that it
-- knew when it sent the claim ($3). Same columns as job_claim.
-- params: int8[], uuid, int8
SELECT id, fence, attempt, crashes, kind, queue, priority, ready_at, attempted_at, max_attempts,
       (EXTRACT(EPOCH FROM timeout) * 1000000)::bigint AS timeout_us,
       backoff,
       CASE WHEN pg_column_size(args) <= 8192 AND pg_column_compression(args) IS NULL THEN args::text END AS args, flags
  FROM claimd.job
 WHERE id = ANY ($1) AND state = 'running' AND worker_id = $2 AND fence > $3
