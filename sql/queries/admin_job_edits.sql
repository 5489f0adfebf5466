-- SPDX-License-Identifier: Apache-2.0
-- The edits of a job, in their order.
-- params: id int8 id
-- shows: version number, edited_at time, edited_by text, applied_at time wide, before json long, after json long,
-- shows: generation number hidden
SELECT version, to_char(edited_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS edited_at, edited_by,
       to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS applied_at, before, after, generation
  FROM claimd.job_edit
 WHERE job_id = $1
 ORDER BY version
