-- SPDX-License-Identifier: Apache-2.0
-- What doctor asks of the database in one go: days of the history that exist ahead of today (in one run), workers, the cluster's row
-- (sweep_hold_us: for so long nothing of the history is deleted).
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
