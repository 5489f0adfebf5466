-- SPDX-License-Identifier: Apache-2.0
-- inv.S16: the handler of a completed job was done before the job ended, under the same fence.
SELECT j.id AS job, format('completed with fence %s at %s, but its handler %s', j.fence, j.finalized_at,
                           COALESCE('was done at ' || to_timestamp(s.done_us / 1e6), 'was not done')) AS seen
  FROM soak.job j LEFT JOIN soak.start s ON s.job = j.id AND s.fence = j.fence
 WHERE j.state = 'completed' AND j.part IS DISTINCT FROM 'effect' AND (s.done_us IS NULL OR to_timestamp(s.done_us / 1e6) > j.finalized_at + interval '1 ms')
 LIMIT 20;
-- wrong: UPDATE soak.start SET done_us = NULL WHERE fence = (SELECT min(fence) FROM soak.job WHERE state = 'completed' AND part IS DISTINCT FROM 'effect')
