-- SPDX-License-Identifier: Apache-2.0
-- With scheduler.priority_aging_ms a job of priority 9 runs although there is always work of priority 0: after nine steps of 0.5 s it is as
-- urgent, and the next full pass, at most 30 s later, gives it its place. The rest of the 45 s is for faults. At least one of them must have
-- waited more than 5 s, or nothing was tested.
SELECT id AS job, format('of priority 9, made at %s, began %s s later', created_at, round(extract(epoch FROM attempted_at - created_at), 1)) AS seen
  FROM soak.job WHERE n = -5 AND attempted_at > created_at + interval '45 s'
UNION ALL
SELECT NULL, format('%s of priority 9, which waited for at most %s, and %s of priority 0', count(*) FILTER (WHERE priority = 9),
                    max(attempted_at - created_at) FILTER (WHERE priority = 9), count(*) FILTER (WHERE priority = 0))
  FROM soak.job WHERE queue = 'soak_aged'
HAVING (max(attempted_at - created_at) FILTER (WHERE priority = 9) > interval '5 s') IS NOT TRUE
 LIMIT 20;
-- wrong: UPDATE soak.job SET created_at = created_at - interval '1 minute' WHERE n = -5
