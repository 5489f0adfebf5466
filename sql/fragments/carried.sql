-- SPDX-License-Identifier: Apache-2.0
-- Columns that a job takes along unchanged from job to job_history, in their order in the table: all but `crashes` and `state`.
-- A migration that adds a column adds it here.
id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata, flags, version, unique_key, backoff, exclusive_key, share_key, second_key, grace, owner
