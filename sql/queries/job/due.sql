-- SPDX-License-Identifier: Apache-2.0
-- Which of these jobs wait to be claimed; for jobs whose hints were popped while another process had their locks. By primary key.
-- params: int8[]
SELECT id, queue, kind, priority, ready_at FROM claimd.job
 WHERE id = ANY ($1) AND state = 'available' AND scheduled_at <= clock_timestamp()
