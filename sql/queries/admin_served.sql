-- SPDX-License-Identifier: Apache-2.0
-- The given pairs of a queue and a kind that no live worker serves, and why, as a text.
-- params: text[], text[]
WITH live AS MATERIALIZED (
    SELECT queues, kinds FROM claimd.worker WHERE NOT dead AND NOT stopped AND stale_at > clock_timestamp()
)
SELECT CASE WHEN NOT EXISTS (SELECT FROM claimd.kind k WHERE k.name = p.kind AND k.is_announced)
            THEN format('kind %s is unknown: no worker has ever announced it', p.kind)
            WHEN k.why IS NOT NULL THEN format('kind %s %s (claimctl kinds show)', p.kind, k.why)
            WHEN NOT EXISTS (SELECT FROM live w WHERE p.queue = ANY (w.queues))
            THEN format('no live worker serves queue %s (worker.queues)', p.queue)
            ELSE format('no live worker of queue %s serves kind %s', p.queue, p.kind) END AS what
  FROM unnest($1, $2) AS p(queue, kind)
  LEFT JOIN claimd.stopped_kind k ON k.name = p.kind
 CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE p.queue = ANY (w.queues) AND p.kind = ANY (w.kinds)) AS workers
                       FROM live w) s
 WHERE s.workers = 0
 ORDER BY 1
