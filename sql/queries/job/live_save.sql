-- SPDX-License-Identifier: Apache-2.0
-- Saves what running jobs report: $1 ids, $2 fences, $3 percent (-1: none), $4 progress text, $5 checkpoint (NULL: unchanged), $7 the
-- end of the log (NULL: unchanged); only for one worker ($6). Never waits, because finishes are sent behind it: locked rows are left out.
-- params: int8[], int8[], int8[], text[], text[], uuid, text[]
WITH said AS MATERIALIZED (
    SELECT j.id, j.fence, s.percent, s.progress, s.checkpoint, s.log
      FROM unnest($1, $2, $3, $4, $5, $7) AS s(id, fence, percent, progress, checkpoint, log)
     CROSS JOIN LATERAL (SELECT o.id, o.fence FROM claimd.job o
                          WHERE o.id = s.id AND o.fence = s.fence AND o.state = 'running' AND o.worker_id = $6
                            FOR NO KEY UPDATE SKIP LOCKED) AS j
), flagged AS (
    UPDATE claimd.job j SET flags = j.flags | {flag.checkpoint}
     WHERE j.id = ANY (ARRAY(SELECT s.id FROM said s WHERE s.checkpoint IS NOT NULL)) AND j.flags & {flag.checkpoint} = 0
)
INSERT INTO claimd.job_live AS l (id, fence, percent, progress, checkpoint, log, changed_at)
SELECT id, fence, NULLIF(percent, -1), NULLIF(progress, ''), checkpoint::jsonb, log, clock_timestamp() FROM said ORDER BY id
    ON CONFLICT (id) DO UPDATE
   SET cancel_requested = l.cancel_requested AND l.fence = excluded.fence, fence = excluded.fence, percent = excluded.percent,
       progress = excluded.progress, checkpoint = COALESCE(excluded.checkpoint, l.checkpoint),
       log = CASE WHEN l.fence = excluded.fence THEN COALESCE(excluded.log, l.log) ELSE excluded.log END, changed_at = excluded.changed_at
RETURNING id
