-- SPDX-License-Identifier: Apache-2.0
-- inv.L2: a job of a killed or stopped worker is available again within 15 s (G7). The time counts from the latest of the fault, the claim,
-- and the last other fault that delays a rescue: of a scheduler, from its beginning, or of PostgreSQL, from its end. No run is lost unless
-- its worker had a fault; but a run of a kind that may start only once is lost with its runner, too.
SELECT r.job, CASE WHEN f.at IS NULL THEN 'lost, but nothing has happened to its worker'
                   ELSE format('rescued %s s after %s of %s', round(extract(epoch FROM r.ended - f.since), 1), f.what, f.target) END AS seen
  FROM soak.run r
  LEFT JOIN claimd.worker w ON w.worker_id = r.worker_id
  LEFT JOIN soak.start x ON x.fence = r.fence
  LEFT JOIN LATERAL (
      SELECT g.*, GREATEST(g.at, r.began, (SELECT max(CASE o.target WHEN 'postgres' THEN o.until ELSE o.at END) FROM soak.fault o
                                            WHERE (o.target = 'postgres' OR o.target LIKE 's%') AND o.at < r.ended)) AS since
        FROM soak.fault g WHERE (g.pid = w.pid OR g.worker = w.pid AND g.runner = x.runner) AND g.at < r.ended ORDER BY g.at DESC LIMIT 1) f ON true
 WHERE r.outcome = 'lost' AND (f.at IS NULL OR r.ended - f.since > interval '15 s')
 LIMIT 20;
-- wrong: UPDATE soak.run SET outcome = 'lost', ended = ended + interval '1 day' WHERE fence = (SELECT min(fence) FROM soak.run)
