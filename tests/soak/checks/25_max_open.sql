-- SPDX-License-Identifier: Apache-2.0
-- A queue with max_open never has more open jobs than that, however many producers offer jobs at once. Accepted jobs complete, refused ones
-- don't exist. Offers were both accepted and refused, or nothing was tested.
SELECT NULL::bigint AS job, format('%s jobs of %s were open at %s, allowed: %s', c.open, q.name, c.at, q.max_open) AS seen
  FROM soak.crowd c JOIN claimd.queue q ON q.max_open < c.open
UNION ALL
SELECT COALESCE(o.job_id, j.id), format('offer %s was job %s, which is %s', o.n, o.job_id, COALESCE(j.state, 'not there'))
  FROM soak.offer o FULL JOIN (SELECT * FROM soak.job WHERE queue = 'soak_open') AS j ON j.id = o.job_id
 WHERE COALESCE(o.job_id, j.id) IS NOT NULL AND (o.n IS NULL OR j.state IS DISTINCT FROM 'completed')
UNION ALL
SELECT NULL, format('%s jobs were accepted, %s offers refused', count(job_id), sum(refused)) FROM soak.offer
HAVING count(job_id) = 0 OR sum(refused) = 0
 LIMIT 20;
-- wrong: UPDATE claimd.queue SET max_open = 1 WHERE max_open IS NOT NULL
