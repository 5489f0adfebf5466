-- SPDX-License-Identifier: Apache-2.0
-- Claims jobs that have a limit and are left out by job_claim, as far as their limits allow; $4 rises: those that no runner waits for.
-- Alone in its transaction: what it locks, others wait for. Same columns as job_claim, and what it holds.
-- params: int8[], uuid, text[], int8[]
SELECT id, fence, attempt, crashes, kind, queue, priority, ready_at, attempted_at, max_attempts,
       (EXTRACT(EPOCH FROM timeout) * 1000000)::bigint AS timeout_us,
       backoff, generation, created_at, array_to_json(tags)::text AS tags,
       CASE WHEN pg_column_size(metadata) <= 8192 AND flags & {flag.long} = 0 THEN metadata::text END AS metadata,
       CASE WHEN pg_column_size(args) <= 8192 AND pg_column_compression(args) IS NULL
             AND (metadata IS NULL OR pg_column_size(metadata) <= 8192) AND flags & {flag.waits|checkpoint|long} = 0
            THEN args::text END AS args, flags, (EXTRACT(EPOCH FROM grace) * 1000000)::bigint AS grace_us, key_row, place, second_row
  FROM claimd.claim_limited($1, $2, $3, $4)
