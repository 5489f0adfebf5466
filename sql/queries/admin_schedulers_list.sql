-- SPDX-License-Identifier: Apache-2.0
-- Schedulers and their last reports, the leader first.
-- shows: host text, pid number, state text, beat_age_s seconds, leads_s seconds, lock_nodes number, lock_nodes_voting number,
-- shows: clock_ahead_s seconds, last_error text long
-- tables: schedulers
SELECT host, pid,
       CASE WHEN stale_at <= clock_timestamp() THEN 'silent' WHEN leader_since IS NOT NULL THEN 'leader' ELSE 'standby' END AS state,
       round(extract(epoch FROM clock_timestamp() - beat_at), 1) AS beat_age_s,
       round(extract(epoch FROM clock_timestamp() - leader_since), 1) AS leads_s, lock_nodes, lock_nodes_voting,
       round(clock_ahead_us / 1e6, 6) AS clock_ahead_s, last_error
  FROM claimd.scheduler
 ORDER BY stale_at > clock_timestamp() DESC, leader_since IS NOT NULL DESC, host, pid
