-- SPDX-License-Identifier: Apache-2.0
-- The new job's id. No row: there is no such schedule.
-- params: text
SELECT claimd.schedule_run(s.name) AS id FROM claimd.schedule s WHERE s.name = $1
