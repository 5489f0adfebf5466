-- SPDX-License-Identifier: Apache-2.0
-- Pauses ($1) all queues or resumes them: the names of those that this changed.
-- params: bool
SELECT name FROM claimd.pause_all_queues() AS name WHERE $1
UNION ALL
SELECT name FROM claimd.resume_all_queues() AS name WHERE NOT $1
