-- SPDX-License-Identifier: Apache-2.0
-- Each queue: its jobs by state, its oldest due job, how many jobs ended per second in the last minute, and who serves it. The cost
-- is bounded on tables of any size, as the fragment says.
-- shows: queue text, available count, scheduled count, retryable count, waiting count wide, running count, oldest_due_s seconds,
-- shows: per_s number, paused bool, workers number, kinds text list, wait_p95_s seconds wide, estimated bool hidden
-- tables: queues
WITH RECURSIVE chosen AS MATERIALIZED (
    SELECT NULL::text AS name, 100000 AS jobs
), {queues}
