-- SPDX-License-Identifier: Apache-2.0
-- inv.S12: no job starts while an earlier run of it is still at work: the lease is the second witness of a worker's death. Allows 2 ms,
-- since a handler writes a line a moment after it has read the clock.
SELECT a.job, format('fence %s was at work %s ms after fence %s had started', a.fence, round((a.last_us - b.t_us) / 1000.0), b.fence) AS seen
  FROM soak.start a JOIN soak.start b ON b.job = a.job AND b.fence > a.fence AND b.t_us < a.last_us - 2000
 LIMIT 20;
-- wrong: INSERT INTO soak.start SELECT job, fence + 1000000000, t_us, 1, NULL, false, last_us + 1, v, worker, text FROM soak.start WHERE last_us > t_us + 2000 LIMIT 1
