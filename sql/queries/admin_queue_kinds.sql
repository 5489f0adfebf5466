-- SPDX-License-Identifier: Apache-2.0
-- Open jobs of a queue by kind and priority, among its first 20,000, so that the cost is bounded on a table of any size. The planner
-- must not know the limit: for a large one it would rather read and sort the whole table. Index: job_feed.
-- params: name text queue
-- shows: kind text, priority number, available number, scheduled number, retryable number, waiting number, running number,
-- shows: paused bool
SELECT j.kind, j.priority,
       count(*) FILTER (WHERE j.state = 'available') AS available,
       count(*) FILTER (WHERE j.state = 'scheduled') AS scheduled,
       count(*) FILTER (WHERE j.state = 'retryable') AS retryable,
       count(*) FILTER (WHERE j.state = 'waiting') AS waiting,
       count(*) FILTER (WHERE j.state = 'running') AS running,
       EXISTS (SELECT FROM claimd.kind k WHERE k.name = j.kind AND k.paused) AS paused
  FROM (SELECT kind, priority, claimd.open_state(state, ready_at, attempt, flags) AS state FROM claimd.job WHERE queue = $1
         ORDER BY queue, priority, share, ready_at, id
         LIMIT (SELECT 20000)) j
 GROUP BY j.kind, j.priority
 ORDER BY j.priority, j.kind
