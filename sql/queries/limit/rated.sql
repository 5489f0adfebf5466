-- SPDX-License-Identifier: Apache-2.0
-- What may start by now of keys with a rate, of kinds, and of jobs with two keys; at most $1 jobs.
-- params: int4
SELECT id, queue, kind, priority, ready_at FROM claimd.next_of_rates($1)
