-- SPDX-License-Identifier: Apache-2.0
-- At most $1 jobs that may start by now: jobs of keys with a rate, of kinds with a limit, and with two keys.
-- params: int4
SELECT id, queue, kind, priority, ready_at FROM claimd.next_of_rates($1)
