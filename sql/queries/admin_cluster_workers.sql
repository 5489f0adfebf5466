-- SPDX-License-Identifier: Apache-2.0
-- Live and stale workers: their slots, and how many lock nodes vote for them.
-- shows: host text, pid number, state text, beat_age_s seconds, running number, slots number, lock_nodes number,
-- shows: lock_nodes_voting number, version text, worker_id text
SELECT host, pid, CASE WHEN stale_at < clock_timestamp() THEN 'stale' WHEN quiet THEN 'quiet' ELSE 'live' END AS state,
       round(extract(epoch FROM clock_timestamp() - beat_at), 1) AS beat_age_s, running, slots, lock_nodes, lock_nodes_voting,
       version, worker_id
  FROM claimd.worker
 WHERE NOT stopped AND NOT dead
 ORDER BY host, pid
 LIMIT 1000
