-- SPDX-License-Identifier: Apache-2.0
-- The edits of a job, in their order.
-- params: id int8 id
-- shows: version number, edited_at time, edited_by text, applied_at time wide, before json long, after json long,
-- shows: generation number hidden
SELECT version, {utc edited_at} AS edited_at, edited_by,
       {utc applied_at} AS applied_at, before, after, generation
  FROM claimd.job_edit
 WHERE job_id = $1
 ORDER BY version
