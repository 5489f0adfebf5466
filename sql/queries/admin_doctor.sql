-- SPDX-License-Identifier: Apache-2.0
-- The data that doctor needs from the database, in one statement: how many days of the history exist ahead of today without a gap,
-- the numbers of workers, and the row of the cluster (sweep_hold_us: for how long no history is deleted).
SELECT (SELECT count(*)
          FROM generate_series(0, 60) AS n
         WHERE NOT EXISTS (SELECT FROM generate_series(0, n) AS m
                            WHERE to_regclass('claimd.job_history_'
                                              || to_char((clock_timestamp() AT TIME ZONE 'UTC')::date + m, 'YYYYMMDD')) IS NULL)) - 1
           AS days_ahead,
       (SELECT count(*) FROM claimd.worker WHERE NOT dead AND NOT stopped AND stale_at > clock_timestamp()) AS live_workers,
       (SELECT count(*) FROM claimd.worker WHERE NOT dead AND NOT stopped AND stale_at <= clock_timestamp()) AS stale_workers,
       c.lock_nodes, c.t_max_us, c.sweep_hold_us, c.timeline
  FROM claimd.cluster c
