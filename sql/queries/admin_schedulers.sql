-- SPDX-License-Identifier: Apache-2.0
-- The reports of schedulers, those with fresh heartbeats first. Ages in µs; NULL = never.
SELECT host, pid, stale_at > clock_timestamp() AS is_heard, leader_since IS NOT NULL AS leads,
       (extract(epoch FROM clock_timestamp() - beat_at) * 1000000)::int8 AS beat_us,
       (extract(epoch FROM clock_timestamp() - leader_since) * 1000000)::int8 AS leads_us,
       (extract(epoch FROM clock_timestamp() - GREATEST(last_pass_at, leader_since)) * 1000000)::int8 AS pass_us,
       lock_nodes, lock_nodes_voting, clock_ahead_us, clock_step_us,
       (extract(epoch FROM clock_timestamp() - clock_stepped_at) * 1000000)::int8 AS stepped_us, last_error,
       (extract(epoch FROM clock_timestamp() - full_pass_at) * 1000000)::int8 AS full_age_us, full_pass_us, lanes, lap_queue,
       lap_us
  FROM claimd.scheduler
 ORDER BY stale_at > clock_timestamp() DESC, leader_since IS NOT NULL DESC, host, pid
