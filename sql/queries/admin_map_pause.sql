-- SPDX-License-Identifier: Apache-2.0
-- Pauses a map, so that none of its jobs start, or resumes it.
-- params: name text, paused bool
-- shows: name text, paused bool
-- tables: record map
-- none: map {name} not found
-- method: POST
SELECT m.name, $2 AS paused FROM claimd.map m CROSS JOIN LATERAL claimd.map_pause(m.name, $2) WHERE m.name = $1
