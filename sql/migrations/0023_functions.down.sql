-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION schedule_request(schedule, timestamptz);
-- ---- functions ----
DROP VIEW live_worker;
DROP TABLE function_loaded, function_file;
ALTER TABLE cluster DROP COLUMN functions_version;
ALTER TABLE worker DROP COLUMN refused;
