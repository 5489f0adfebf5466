-- SPDX-License-Identifier: Apache-2.0
-- The columns of admin_queues that do not depend on workers, and how many jobs ended lately.
-- shows: queue text, available count, scheduled count, retryable count, waiting count wide, running count, oldest_due_s seconds,
-- shows: paused bool, estimated bool hidden
-- tables: queues, finished = stats_finished
SELECT queue, available, scheduled, retryable, waiting, running, oldest_due_s, paused, estimated FROM ({admin_queues}) AS all_queues
