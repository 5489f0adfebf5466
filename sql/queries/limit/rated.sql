-- SPDX-License-Identifier: Apache-2.0
-- At most $1 jobs that have waited for their keys and may start by now.
-- params: int4
SELECT id, queue, kind, priority, ready_at FROM claimd.next_of_rates($1)
