-- SPDX-License-Identifier: Apache-2.0
-- The cluster poll of each second, by the leader and by standbys too, in one statement. Rows by `what`:
--   0: a = transactions of this database that write, at = now(), n = T_max in µs, m = what there is, as a sum: 1 = jobs that
--      wait for their keys, 2 = jobs that may no longer have to wait for others, 4 = batches to end, 8 = schedules,
--      16 = no day of the history for today or tomorrow, 32 = a hold, during which no history is deleted, 64 = jobs that have expired,
--      128 = maps that are not done
--   1: a worker that has not ended: a = worker_id, b = queues, c = kinds, dead, stale, n = lost pops, m = age of its heartbeat in µs
--   2: a paused queue: a = its name
-- All tables are small. No locks.
SELECT 0 AS what,
       COALESCE((SELECT string_agg(x.xid::text, ',')
                   FROM (SELECT backend_xid FROM pg_stat_activity
                          WHERE datname = current_database() AND backend_xid IS NOT NULL
                         UNION
                         SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()) AS x(xid)), '') AS a,
       NULL::text AS b, NULL::text AS c, false AS dead, false AS stale,
       t_max_us AS n,
       (CASE WHEN EXISTS (SELECT FROM claimd.key_waiting) THEN 1 ELSE 0 END
        + CASE WHEN EXISTS (SELECT FROM claimd.job_wake) THEN 2 ELSE 0 END
        + CASE WHEN EXISTS (SELECT FROM claimd.batch WHERE over_at IS NULL AND closed_at IS NOT NULL) THEN 4 ELSE 0 END
        + CASE WHEN EXISTS (SELECT FROM claimd.schedule WHERE NOT paused) THEN 8 ELSE 0 END
        + CASE WHEN to_regclass(to_char(now() AT TIME ZONE 'UTC', '"claimd.job_history_"YYYYMMDD')) IS NULL
                 OR to_regclass(to_char(now() AT TIME ZONE 'UTC' + interval '1 day', '"claimd.job_history_"YYYYMMDD')) IS NULL
               THEN 16 ELSE 0 END
        + CASE WHEN sweep_hold_us > 0 THEN 32 ELSE 0 END
        + CASE WHEN EXISTS (SELECT FROM claimd.job_deadline WHERE expires_at <= now()) THEN 64 ELSE 0 END
        + CASE WHEN EXISTS (SELECT FROM claimd.map_ended)
                 OR EXISTS (SELECT FROM claimd.map m JOIN claimd.map_count c ON c.map_id = m.id
                             WHERE m.rows > c.completed + c.failed + c.cancelled) THEN 128 ELSE 0 END)::int8 AS m, now() AS at
  FROM claimd.cluster
UNION ALL
SELECT 1, worker_id::text, array_to_string(queues, ','), array_to_string(kinds, ','), dead, stale_at < now(), lost_pops,
       (EXTRACT(EPOCH FROM now() - beat_at) * 1000000)::int8, beat_at
  FROM claimd.worker WHERE NOT stopped
UNION ALL
SELECT 2, name, NULL, NULL, false, false, 0, 0, now()
  FROM claimd.queue WHERE paused
