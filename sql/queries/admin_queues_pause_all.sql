-- SPDX-License-Identifier: Apache-2.0
-- Pauses all queues, or resumes them if $1 is false; returns the names of those that this changed.
-- params: paused bool
-- shows: name text, paused bool, changed bool
-- tables: queues
-- method: POST
SELECT name, $1 AS paused, true AS changed FROM claimd.pause_all_queues() AS name WHERE $1
UNION ALL
SELECT name, $1, true FROM claimd.resume_all_queues() AS name WHERE NOT $1
