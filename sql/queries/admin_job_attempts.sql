-- SPDX-License-Identifier: Apache-2.0
-- The recorded attempts of a job, of all generations, in their order.
-- params: id int8 id
-- shows: attempt number, generation number wide, outcome text, fence number, host text wide, started_at time, ran_s seconds,
-- shows: error text long, log_tail text hidden
SELECT a.attempt, a.generation, a.outcome, a.fence, w.host,
       {utc a.started_at} AS started_at,
       round(extract(epoch FROM a.ended_at - a.started_at), 3) AS ran_s,
       a.error, a.log_tail
  FROM claimd.job_attempt a
  LEFT JOIN claimd.worker w ON w.worker_id = a.worker_id
 WHERE a.job_id = $1
 ORDER BY a.fence
