-- SPDX-License-Identifier: Apache-2.0
-- inv.S11: a cancelled job does not start any more, and one that was cancelled while queued ends as cancelled.
SELECT j.id AS job, format('cancelled at %s, started at %s', j.finalized_at, to_timestamp(s.t_us / 1e6)) AS seen
  FROM soak.job j JOIN soak.start s ON s.job = j.id
 WHERE j.state = 'cancelled' AND to_timestamp(s.t_us / 1e6) > j.finalized_at
UNION ALL
SELECT a.job_id, format('the answer of its cancel was %L, and it is %s', a.answer, j.state)
  FROM soak.act a LEFT JOIN soak.job j ON j.id = a.job_id
 WHERE a.op = 'cancel' AND a.answer = 'cancelled' AND j.state IS DISTINCT FROM 'cancelled'
 LIMIT 20;
-- wrong: UPDATE soak.job SET state = 'completed' WHERE id = (SELECT min(job_id) FROM soak.act WHERE op = 'cancel' AND answer = 'cancelled')
