-- SPDX-License-Identifier: Apache-2.0
-- inv.S12: a job is not moved while its lease is held, however long its worker has been silent. A lease lasts 10 s and begins before the
-- claim: up to 3 s before it on a busy machine, earlier still if PostgreSQL was away. The leases of a worker that is stopped, or that has no
-- successor, are not released early. (Chaos runs compare the intervals themselves: K2.)
SELECT r.job, format('moved %s s after its claim, its worker was struck (%s %s) at %s', round(extract(epoch FROM r.ended - r.began), 1), f.what,
                     f.target, f.at) AS seen
  FROM soak.run r
  JOIN claimd.worker w ON w.worker_id = r.worker_id
 CROSS JOIN LATERAL (SELECT g.* FROM soak.fault g WHERE g.pid = w.pid AND g.at < r.ended ORDER BY g.at DESC LIMIT 1) AS f
 WHERE r.outcome = 'lost' AND r.ended < r.began + interval '7 s'
   AND (f.what = 'kill for good' OR (f.what = 'stop' AND r.ended < f.until))
   AND NOT EXISTS (SELECT FROM soak.fault p WHERE p.target = 'postgres' AND r.began BETWEEN p.at AND p.until + interval '10 s')
 LIMIT 20;
-- wrong: UPDATE soak.run r SET outcome = 'lost', ended = f.at + interval '1 ms', began = f.at - interval '1 s' FROM claimd.worker w, soak.fault f WHERE w.worker_id = r.worker_id AND f.pid = w.pid AND f.what IN ('stop', 'kill for good')
