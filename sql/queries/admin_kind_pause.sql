-- SPDX-License-Identifier: Apache-2.0
-- Pauses a kind, or resumes it if $2 is false. `changed`: whether this changed something.
-- params: name text, paused bool
-- shows: name text, paused bool, changed bool
-- tables: record kind
-- method: POST
SELECT $1 AS name, $2 AS paused, CASE WHEN $2 THEN claimd.pause_kind($1) ELSE claimd.resume_kind($1) END AS changed
