-- SPDX-License-Identifier: Apache-2.0
-- The columns that a worker gets of a job that it claims. Args are included if they are small and need no decompression; otherwise
-- job/args.sql fetches them, as well as large metadata, a checkpoint, predecessors, and values that are much longer as text ({flag.long}).
id, fence, attempt, crashes, kind, queue, priority, ready_at, attempted_at, max_attempts,
          (EXTRACT(EPOCH FROM timeout) * 1000000)::bigint AS timeout_us,
          backoff, generation, created_at, array_to_json(tags)::text AS tags,
          CASE WHEN pg_column_size(metadata) <= 8192 AND flags & {flag.long} = 0 THEN metadata::text END AS metadata,
          CASE WHEN pg_column_size(args) <= 8192 AND pg_column_compression(args) IS NULL
                AND (metadata IS NULL OR pg_column_size(metadata) <= 8192) AND flags & {flag.waits|checkpoint|long} = 0
               THEN args::text END AS args, flags, (EXTRACT(EPOCH FROM grace) * 1000000)::bigint AS grace_us
