-- SPDX-License-Identifier: Apache-2.0
-- Open jobs by queue. Reads the whole table of open jobs.
SELECT j.queue,
       count(*) FILTER (WHERE j.state = 'available' AND j.ready_at <= statement_timestamp()) AS available,
       count(*) FILTER (WHERE j.state = 'available' AND j.ready_at > statement_timestamp() AND j.attempt = 0) AS scheduled,
       count(*) FILTER (WHERE j.state = 'available' AND j.ready_at > statement_timestamp() AND j.attempt > 0) AS retryable,
       count(*) FILTER (WHERE j.state = 'running') AS running,
       GREATEST(0, round(extract(epoch FROM statement_timestamp() - min(j.ready_at) FILTER (WHERE j.state = 'available')), 1))
           AS oldest_due_s,
       EXISTS (SELECT FROM claimd.queue q WHERE q.name = j.queue AND q.paused) AS paused
  FROM claimd.job j
 GROUP BY j.queue
 ORDER BY j.queue
