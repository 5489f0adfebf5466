-- SPDX-License-Identifier: Apache-2.0
-- Stores what a scheduler reports, for doctor, and deletes the rows of schedulers that last did so more than an hour ago. Ages are in
-- µs; negative: never. Returns PostgreSQL's clock, and whether the scheduler's list of lock nodes is still the cluster's: if not,
-- nothing is stored. The shared lock protects this check against `claimctl lock-nodes set`, and blocks nothing else. $17: the schema
-- version that the scheduler was built for.
-- params: uuid, int8, int4, text, text, text, int8, int8, int4, int4, int8, int8, int8, text, int8, int8, int4, int8, text, int8
WITH ours AS (
    SELECT clock_timestamp() AS now FROM claimd.cluster WHERE lock_nodes = $6 FOR KEY SHARE
), said AS (
    INSERT INTO claimd.scheduler AS s (scheduler_id, stale_at, pid, host, version, leader_since, last_pass_at, lock_nodes,
                                       lock_nodes_voting, clock_ahead_us, clock_step_us, clock_stepped_at, last_error, full_pass_at, full_pass_us,
                                       built_for, lanes, lap_queue, lap_us)
    SELECT $1, now + $2 * interval '1 microsecond', $3, $4, $5,
           CASE WHEN $7 >= 0 THEN now - $7 * interval '1 microsecond' END,
           CASE WHEN $8 >= 0 THEN now - $8 * interval '1 microsecond' END,
           $9, $10, (extract(epoch FROM now) * 1000000)::int8 - $11, $12,
           CASE WHEN $13 >= 0 THEN now - $13 * interval '1 microsecond' END, $14,
           CASE WHEN $15 >= 0 THEN now - $15 * interval '1 microsecond' END, $16, $17, $18, $19, $20
      FROM ours
        ON CONFLICT (scheduler_id) DO UPDATE
       SET beat_at = clock_timestamp(), stale_at = excluded.stale_at, leader_since = excluded.leader_since,
           last_pass_at = excluded.last_pass_at, lock_nodes = excluded.lock_nodes, lock_nodes_voting = excluded.lock_nodes_voting,
           clock_ahead_us = excluded.clock_ahead_us, clock_step_us = excluded.clock_step_us,
           clock_stepped_at = excluded.clock_stepped_at, last_error = excluded.last_error,
           full_pass_at = excluded.full_pass_at, full_pass_us = excluded.full_pass_us, lanes = excluded.lanes,
           lap_queue = excluded.lap_queue, lap_us = excluded.lap_us
    RETURNING scheduler_id
), gone AS (
    DELETE FROM claimd.scheduler WHERE scheduler_id <> $1 AND beat_at < clock_timestamp() - interval '1 hour'
)
SELECT clock_timestamp() AS at, EXISTS (SELECT FROM said) AS is_ours, (SELECT lock_nodes FROM claimd.cluster) AS lock_nodes
