-- SPDX-License-Identifier: Apache-2.0
-- Gives claimed jobs back, uncharged (INTERFACES rule 3). Fenced; locked rows are left out. They lie behind the feed's
-- cursor, so the saved marks of their lanes go back in the same transaction. Returns the fences that were accepted.
-- params: int8[], int8[]
WITH back AS (
    UPDATE claimd.job
       SET state = 'available', attempt = attempt - 1
     WHERE id = ANY (ARRAY(SELECT id FROM claimd.job
                            WHERE id = ANY ((SELECT $1)::bigint[]) AND state = 'running'
                              AND fence = $2[width_bucket(fence, $2)]
                              FOR UPDATE SKIP LOCKED))
       AND state = 'running' AND fence = $2[width_bucket(fence, $2)]
    RETURNING fence, queue, priority, share, ready_at
), marks AS (
    SELECT l.queue, l.priority, l.share, b.ready_at
      FROM claimd.lane l
      JOIN (SELECT queue, priority, share, min(ready_at) AS ready_at FROM back GROUP BY 1, 2, 3) b
           USING (queue, priority, share)
     WHERE l.low_water > b.ready_at
     ORDER BY l.queue, l.priority, l.share
       FOR UPDATE OF l
), lowered AS (
    UPDATE claimd.lane l
       SET low_water = m.ready_at
      FROM marks m
     WHERE (l.queue, l.priority, l.share) = (m.queue, m.priority, m.share) AND l.low_water > m.ready_at
)
SELECT fence FROM back
