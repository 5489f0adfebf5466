-- SPDX-License-Identifier: Apache-2.0
-- One queue, with the columns of admin_queues.
-- params: name text queue
-- shows: queue text, available count, scheduled count, retryable count, waiting count wide, running count, oldest_due_s seconds,
-- shows: per_s number, paused bool, workers number, kinds text list, wait_p95_s seconds, estimated bool hidden
-- tables: record queue, record limits = queue_limits, retention = queue_rules, kinds = queue_kinds, runs = queue_runs,
-- tables: workers = queue_workers
-- none: queue {name} not found: it has no open job, no worker and no setting
WITH RECURSIVE chosen AS MATERIALIZED (
    SELECT $1 COLLATE "C" AS name, 20000 AS jobs
), {queues}
