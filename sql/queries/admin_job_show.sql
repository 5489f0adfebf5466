-- SPDX-License-Identifier: Apache-2.0
-- One job with all that is known of it, and `situation`: where it is and what it waits for. By id, in both tables; after an
-- operator's retry the newest generation counts.
-- params: int8
WITH j AS (
    SELECT * FROM claimd.jobs WHERE id = $1 ORDER BY generation DESC LIMIT 1
), live AS (
    SELECT count(*) FILTER (WHERE j.queue = ANY (w.queues)) AS of_queue,
           count(*) FILTER (WHERE j.queue = ANY (w.queues) AND j.kind = ANY (w.kinds)) AS of_kind,
           count(*) FILTER (WHERE j.queue = ANY (w.queues) AND j.kind = ANY (w.kinds) AND w.lock_nodes > 0
                              AND 2 * w.lock_nodes_voting <= w.lock_nodes) AS cut_off
      FROM j, claimd.worker w
     WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > clock_timestamp()
), feed AS (
    SELECT count(*) AS schedulers, count(leader_since) AS leaders FROM claimd.scheduler WHERE stale_at > clock_timestamp()
)
SELECT j.id, j.state,
       CASE WHEN j.state = 'running' THEN
                CASE WHEN w.worker_id IS NULL THEN 'runs on a worker that left no row'
                     WHEN w.stopped OR w.dead THEN format('its worker %s (pid %s) is gone: it will be rescued', w.host, w.pid)
                     ELSE format('runs on %s (pid %s) since %s s, last beat %s s ago%s', w.host, w.pid,
                                 round(extract(epoch FROM clock_timestamp() - j.attempted_at), 1),
                                 round(extract(epoch FROM clock_timestamp() - w.beat_at), 1),
                                 CASE WHEN w.stale_at < clock_timestamp() THEN ': stale, it will be rescued' ELSE '' END) END
                || CASE WHEN EXISTS (SELECT FROM claimd.job_live l WHERE l.id = j.id AND l.fence = j.fence AND l.cancel_requested)
                        THEN '; its cancel was asked for' ELSE '' END
            WHEN j.finalized_at IS NOT NULL THEN
                format('ended %s s ago', round(extract(epoch FROM clock_timestamp() - j.finalized_at)))
            WHEN EXISTS (SELECT FROM claimd.job_wait w WHERE w.job_id = j.id) THEN
                (SELECT CASE WHEN count(*) FILTER (WHERE a.state IS NULL) = 0
                             THEN format('held: job %s was %s', min(a.after_id) FILTER (WHERE a.state <> 'completed'),
                                         min(a.state) FILTER (WHERE a.state <> 'completed'))
                             ELSE format('waits for %s of %s jobs to end, such as job %s', count(*) FILTER (WHERE a.state IS NULL),
                                         count(*), min(a.after_id) FILTER (WHERE a.state IS NULL)) END
                   FROM claimd.job_after a WHERE a.job_id = j.id)
            ELSE CASE WHEN j.ready_at > clock_timestamp()
                      THEN format('due in %s s', round(extract(epoch FROM j.ready_at - clock_timestamp()), 1))
                      ELSE format('due since %s s', round(extract(epoch FROM clock_timestamp() - j.ready_at), 1)) END
                 || CASE WHEN EXISTS (SELECT FROM claimd.queue q WHERE q.name = j.queue AND q.paused)
                         THEN format('; queue %s is paused', j.queue) ELSE '' END
                 || CASE WHEN k.paused THEN format('; kind %s is paused', j.kind)
                         WHEN live.of_queue = 0 THEN format('; no live worker serves queue %s', j.queue)
                         WHEN live.of_kind = 0 THEN format('; none of the %s live workers of queue %s serves kind %s',
                                                           live.of_queue, j.queue, j.kind)
                         ELSE format('; served by %s live workers', live.of_kind) END
                 || CASE WHEN j.ready_at > clock_timestamp() OR live.cut_off = 0 THEN ''
                         WHEN live.cut_off = live.of_kind THEN '; no quorum: too few lock nodes vote for them'
                         ELSE format('; no quorum: too few lock nodes vote for %s of them', live.cut_off) END
                 || CASE WHEN j.ready_at > clock_timestamp() OR feed.leaders > 0 THEN ''
                         WHEN feed.schedulers = 0 THEN '; no leader: no scheduler runs'
                         ELSE format('; no leader: none of %s schedulers leads', feed.schedulers) END
       END AS situation,
       j.kind, j.queue, j.priority, j.args, j.tags::text, j.metadata, j.unique_key,
       to_char(j.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
       to_char(j.scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS scheduled_at,
       to_char(j.attempted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS attempted_at,
       to_char(j.finalized_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS finalized_at,
       j.attempt, CASE WHEN k.at_most_once THEN 1 ELSE COALESCE(j.max_attempts, k.max_attempts, 25) END AS max_attempts,
       j.crashes, COALESCE(k.max_crashes, 3) AS max_crashes,
       extract(epoch FROM COALESCE(j.timeout, k.timeout, interval '30 minutes'))::float8 AS timeout_s,
       COALESCE(k.at_most_once, false) AS at_most_once,
       j.fence, j.generation, j.version, j.worker_id, w.host, w.pid, j.result, j.error,
       o.percent AS progress, o.progress AS doing, o.checkpoint
  FROM live, feed, j
  LEFT JOIN claimd.job_live o ON o.id = j.id AND j.finalized_at IS NULL AND (o.fence = j.fence OR j.state <> 'running')
  LEFT JOIN claimd.worker w ON w.worker_id = j.worker_id
  LEFT JOIN claimd.kind k ON k.name = j.kind
