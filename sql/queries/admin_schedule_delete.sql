-- SPDX-License-Identifier: Apache-2.0
-- Deletes a schedule. No row if there is no such schedule.
-- params: name text
-- shows: name text, state text
-- tables: record schedule
-- none: schedule '{name}' not found
-- method: DELETE
SELECT name, 'deleted' AS state FROM (SELECT s.name, claimd.schedule_delete(s.name) FROM claimd.schedule s WHERE s.name = $1) x
