-- SPDX-License-Identifier: Apache-2.0
-- Jobs that have ended leave nothing behind: no places, keys, waits or rows in job_live.
SELECT job_id AS job, format('%s still holds a place of %s', fence, queue) AS seen FROM claimd.slot WHERE fence <> 0
UNION ALL SELECT job_id, format('%s still holds %s', fence, key) FROM claimd.exclusive
UNION ALL SELECT job_id, format('still has the unique key %s', key) FROM claimd.job_key
UNION ALL SELECT job_id, 'still waits for others' FROM claimd.job_wait
UNION ALL SELECT id, 'still has a row in job_live' FROM claimd.job_live
 LIMIT 20;
-- wrong: UPDATE claimd.slot SET fence = 1
