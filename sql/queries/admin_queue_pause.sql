-- SPDX-License-Identifier: Apache-2.0
-- Pauses a queue, or resumes it if $2 is false. `changed`: whether this changed something.
-- params: name text, paused bool
-- shows: name text, paused bool, changed bool
-- tables: record queue
-- method: POST
SELECT $1 AS name, $2 AS paused, CASE WHEN $2 THEN claimd.pause_queue($1) ELSE claimd.resume_queue($1) END AS changed
