-- SPDX-License-Identifier: Apache-2.0
-- Creates a job of a schedule now; returns its id. No row if there is no such schedule.
-- params: name text
-- shows: id number
-- tables: record job
-- none: schedule '{name}' not found
-- method: POST
SELECT claimd.schedule_run(s.name) AS id FROM claimd.schedule s WHERE s.name = $1
