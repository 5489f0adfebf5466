-- SPDX-License-Identifier: Apache-2.0
-- The schedules that are not in a file, if the file has a section of schedules.
-- params: text
SELECT s.name FROM claimd.schedule s
 WHERE $1::jsonb ? 'schedules'
   AND NOT EXISTS (SELECT FROM jsonb_array_elements($1::jsonb->'schedules') e WHERE e->>'name' = s.name)
 ORDER BY s.name
