-- SPDX-License-Identifier: Apache-2.0
-- GUARANTEES 2.1: when a worker is killed, or stopped for longer than its lease, each job that it was running starts at most once more: at
-- most as many starts as it has slots, for each such fault. Counted are its runs that were not done, except those whose runner was killed.
SELECT min(x.job) AS job, format('the worker with pid %s lost %s starts, has %s slots and was struck %s times', x.worker, count(*), $SLOTS,
                                 (SELECT count(*) FROM soak.fault f WHERE f.pid = x.worker)) AS seen
  FROM soak.start x LEFT JOIN soak.run r ON r.fence = x.fence
 WHERE x.done_us IS NULL AND NOT x.is_fallen AND COALESCE(r.outcome, 'lost') = 'lost'
   AND NOT EXISTS (SELECT FROM soak.fault k WHERE k.worker = x.worker AND k.runner = x.runner AND k.at >= to_timestamp(x.t_us / 1e6))
 GROUP BY x.worker HAVING count(*) > $SLOTS * (SELECT count(*) FROM soak.fault f WHERE f.pid = x.worker)
 LIMIT 20;
-- wrong: INSERT INTO soak.start SELECT 1, 1000000000 + g, 1, 1, NULL, false, 1, 1, 1, '' FROM generate_series(1, 100) g
