-- SPDX-License-Identifier: Apache-2.0
-- Why due jobs of served kinds may wait: no scheduler leads, or workers have no quorum of lock nodes; as a text, NULL if neither.
-- Also who leads, since when, and how many lock nodes vote for it.
-- shows: schedulers number, leaders number, workers_without_quorum number, leader text, leads_s seconds, lock_nodes number,
-- shows: lock_nodes_voting number, trouble text prose
-- tables: queues = queues, workers = workers, finished = stats_finished, record health
WITH s AS (
    SELECT count(*) AS schedulers, count(leader_since) AS leaders FROM claimd.scheduler WHERE stale_at > clock_timestamp()
), w AS (
    SELECT count(*) AS workers, count(*) FILTER (WHERE lock_nodes > 0 AND 2 * lock_nodes_voting <= lock_nodes) AS cut_off,
           min(format('%s of %s', lock_nodes_voting, lock_nodes)) FILTER (WHERE 2 * lock_nodes_voting <= lock_nodes) AS votes
      FROM claimd.worker
     WHERE NOT dead AND NOT stopped AND stale_at > clock_timestamp()
)
SELECT s.schedulers, s.leaders, w.cut_off AS workers_without_quorum, l.leader, l.leads_s, l.lock_nodes, l.lock_nodes_voting,
       NULLIF(concat_ws(E'\n',
           CASE WHEN s.schedulers = 0 THEN 'no leader: no scheduler runs, due jobs are not fed'
                WHEN s.leaders = 0 AND s.schedulers = 1 THEN 'no leader: the only scheduler does not lead, due jobs are not fed'
                WHEN s.leaders = 0 THEN format('no leader: none of %s schedulers leads, due jobs are not fed', s.schedulers) END,
           CASE WHEN w.cut_off > 0
                THEN format('no quorum: %s of %s workers claim nothing, %s lock nodes vote for them', w.cut_off, w.workers, w.votes) END),
           '') AS trouble
  FROM s
 CROSS JOIN w
  LEFT JOIN LATERAL (SELECT host AS leader, round(extract(epoch FROM clock_timestamp() - leader_since), 1) AS leads_s, lock_nodes,
                            lock_nodes_voting
                       FROM claimd.scheduler WHERE leader_since IS NOT NULL AND stale_at > clock_timestamp()
                      ORDER BY leader_since DESC LIMIT 1) l ON true
