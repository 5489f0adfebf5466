-- SPDX-License-Identifier: Apache-2.0
-- inv.S3: the accepted completion is that of the newest claim: the result has its fence, and there is no newer start.
SELECT j.id AS job, format('completed with fence %s, the result is of fence %s, the newest start has fence %s', j.fence, j.result_fence,
                           max(s.fence)) AS seen
  FROM soak.job j JOIN soak.start s ON s.job = j.id
 WHERE j.state = 'completed'
 GROUP BY j.id, j.fence, j.result_fence HAVING j.fence IS DISTINCT FROM j.result_fence OR max(s.fence) > j.fence
 LIMIT 20;
-- wrong: UPDATE soak.job SET result_fence = result_fence - 1 WHERE n = 500
