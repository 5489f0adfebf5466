-- SPDX-License-Identifier: Apache-2.0
-- For jobs that were refused because of a limit, after their locks were released: jobs that may be claimed by now within the same limits.
-- params: int8[]
SELECT id, queue, kind, priority, ready_at FROM claimd.next_free($1)
