-- SPDX-License-Identifier: Apache-2.0
-- Inserts the row of one worker process at its start; repeated with the same id if the first reply was lost.
-- A session whose role may not see its own start stores 'epoch': its successor can't end it then, and relies on lock_timeout. No row
-- if the cluster has another list of lock nodes ($11) by now; the shared lock protects this check against `claimctl lock-nodes set`,
-- and blocks nothing else. $12: the schema version that the program was built for; $13: its
-- commands, as JSON.
-- params: uuid, int8, int4, int4, text, text, text, text, text[], text[], text, int4, text
INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, token_prefix, version, queues, kinds,
                           built_for, commands, backend_pid, backend_start)
SELECT $1, clock_timestamp() + $2 * interval '1 microsecond', $3, $4, $5, $6, $7, $8, $9, $10, $12, $13::jsonb, pg_backend_pid(),
       COALESCE((SELECT backend_start FROM pg_catalog.pg_stat_activity WHERE pid = pg_backend_pid()), 'epoch')
  FROM claimd.cluster
 WHERE lock_nodes = $11
   FOR KEY SHARE OF cluster
    ON CONFLICT (worker_id) DO UPDATE
   SET beat_at = clock_timestamp(), stale_at = excluded.stale_at, backend_pid = excluded.backend_pid,
       backend_start = excluded.backend_start
RETURNING worker_id
