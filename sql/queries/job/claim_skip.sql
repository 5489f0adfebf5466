-- SPDX-License-Identifier: Apache-2.0
-- job_claim without waiting: rows that somebody has locked are left out (INTERFACES rule 4).
-- params: int8[], uuid, text[], int8[], int4
UPDATE claimd.job
   SET state = 'running', attempt = attempt + 1, fence = nextval('claimd.fence'), worker_id = $2,
       attempted_at = clock_timestamp()
 WHERE id = ANY (ARRAY(SELECT id FROM claimd.job
                        WHERE id = ANY ((SELECT $1)::bigint[]) AND state = 'available'
                          FOR UPDATE SKIP LOCKED))
   AND state = 'available' AND scheduled_at <= clock_timestamp()
   AND flags & {flag.key|place|asked|deadline} = 0 AND queue <> ALL (ARRAY(SELECT name FROM claimd.queue WHERE limited))
   AND kind = ANY ($3) AND kind <> ALL (ARRAY(SELECT name FROM claimd.kind WHERE limited)) AND attempt + $5 < COALESCE(max_attempts, $4[array_position($3, kind)])
RETURNING id, fence, attempt, crashes, kind, queue, priority, ready_at, attempted_at, max_attempts,
          (EXTRACT(EPOCH FROM timeout) * 1000000)::bigint AS timeout_us,
          backoff, generation, created_at, array_to_json(tags)::text AS tags,
          CASE WHEN pg_column_size(metadata) <= 8192 AND flags & {flag.long} = 0 THEN metadata::text END AS metadata,
          CASE WHEN pg_column_size(args) <= 8192 AND pg_column_compression(args) IS NULL
                AND (metadata IS NULL OR pg_column_size(metadata) <= 8192) AND flags & {flag.waits|checkpoint|long} = 0
               THEN args::text END AS args, flags, (EXTRACT(EPOCH FROM grace) * 1000000)::bigint AS grace_us
