-- SPDX-License-Identifier: Apache-2.0
-- Pauses ($2) a kind or resumes it. True: that changed something.
-- params: name text, paused bool
-- shows: name text, paused bool, changed bool
-- tables: record kind
-- method: POST
SELECT $1 AS name, $2 AS paused, CASE WHEN $2 THEN claimd.pause_kind($1) ELSE claimd.resume_kind($1) END AS changed
