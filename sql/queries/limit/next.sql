-- SPDX-License-Identifier: Apache-2.0
-- For jobs that were refused for a limit, and whose locks are released again: what may be claimed by now within the same limits.
-- params: int8[]
SELECT id, queue, kind, priority, ready_at FROM claimd.next_free($1)
