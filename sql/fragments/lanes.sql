-- SPDX-License-Identifier: Apache-2.0
-- A recursive part `lane`: the first 20,000 lanes that have jobs, found by hopping over the feed index, so that the cost is bounded on a
-- table of any size. Index: job_feed.
lane AS (
    (SELECT queue, priority, share, 1 AS n FROM claimd.job ORDER BY queue, priority, share LIMIT 1)
    UNION ALL
    SELECT j.queue, j.priority, j.share, l.n + 1
      FROM lane l
     CROSS JOIN LATERAL (SELECT queue, priority, share FROM claimd.job
                          WHERE (queue, priority, share) > (l.queue, l.priority, l.share)
                          ORDER BY queue, priority, share LIMIT 1) j
     WHERE l.n < 20000
)
