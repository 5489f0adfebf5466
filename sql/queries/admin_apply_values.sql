-- SPDX-License-Identifier: Apache-2.0
-- The settings of a queue, kind or key ($1: its section in a file, $2: its name), as a file writes them; NULL: not set. Always
-- the same rows in the same order.
-- params: text, text
WITH rate AS (
    SELECT r.per_s, (SELECT round(r.per_s * u.seconds) || '/' || u.unit
                       FROM (VALUES (1, 's'), (60, 'm'), (3600, 'h'), (86400, 'd')) AS u(seconds, unit)
                      WHERE round(r.per_s * u.seconds) BETWEEN 1 AND 100000
                        AND abs(r.per_s * u.seconds - round(r.per_s * u.seconds)) < 0.000001
                      ORDER BY u.seconds LIMIT 1) AS said
      FROM (SELECT rate FROM claimd.queue WHERE $1 = 'queues' AND name = $2
            UNION ALL
            SELECT rate FROM claimd.key_limit WHERE $1 = 'keys' AND key = $2 AND NOT is_grouped
            UNION ALL
            SELECT l.rate FROM claimd.key_limit l JOIN claimd.kind k ON k.limited AND k.name = $2 WHERE $1 = 'kinds' AND l.key = 'kind:' || $2
            UNION ALL
            SELECT rate FROM claimd.key_group WHERE $1 = 'keys' AND prefix || '*' = $2) AS r(per_s)
     WHERE r.per_s IS NOT NULL
), rules AS (
    SELECT CASE WHEN max(state) = '' THEN min(kept) ELSE jsonb_object_agg(state, kept)::text END AS said
      FROM (SELECT state, CASE days WHEN 0 THEN 'none' ELSE days || 'd' END AS kept FROM claimd.retention
             WHERE scope || 's' = $1 AND name = $2) AS r
), by_hand AS (
    SELECT k.paused, k.limited, k.set_by_hand AS patch, extract(epoch FROM k.timeout) AS timeout_s, extract(epoch FROM k.grace) AS grace_s
      FROM claimd.kind k
     WHERE $1 = 'kinds' AND k.name = $2
)
SELECT v.field, v.value
  FROM (VALUES (1)) AS one
  LEFT JOIN claimd.queue q ON q.name = $2
  LEFT JOIN by_hand k ON true
  LEFT JOIN claimd.key_limit l ON l.key = $2 AND NOT l.is_grouped
  LEFT JOIN claimd.key_limit kl ON k.limited AND kl.key = 'kind:' || $2
  LEFT JOIN claimd.key_group g ON g.prefix || '*' = $2
  LEFT JOIN rate ON true
  LEFT JOIN rules ON true
 CROSS JOIN LATERAL (
     VALUES (1, 'queues', 'paused', COALESCE(q.paused, false)::text),
            (2, 'queues', 'weight', q.weight::text),
            (3, 'queues', 'max_running', q.max_running::text),
            (4, 'queues', 'rate', COALESCE(rate.said, round(rate.per_s::numeric, 6) || '/s')),
            (5, 'queues', 'max_open', q.max_open::text),
            (6, 'queues', 'retain', rules.said),
            (1, 'kinds', 'paused', COALESCE(k.paused, false)::text),
            (2, 'kinds', 'max_attempts', k.patch ->> 'max_attempts'),
            (3, 'kinds', 'max_crashes', k.patch ->> 'max_crashes'),
            (4, 'kinds', 'timeout', CASE WHEN NOT k.patch ? 'timeout' THEN NULL
                                         WHEN timeout_s % 86400 = 0 THEN (timeout_s / 86400)::bigint || 'd'
                                         WHEN timeout_s % 3600 = 0 THEN (timeout_s / 3600)::bigint || 'h'
                                         WHEN timeout_s % 60 = 0 THEN (timeout_s / 60)::bigint || 'm'
                                         ELSE trim_scale(timeout_s) || 's' END),
            (5, 'kinds', 'grace', CASE WHEN NOT k.patch ? 'grace' THEN NULL
                                       WHEN grace_s % 60 = 0 THEN (grace_s / 60)::bigint || 'm'
                                       ELSE trim_scale(grace_s) || 's' END),
            (6, 'kinds', 'backoff', k.patch ->> 'backoff'),
            (7, 'kinds', 'keep_log', k.patch ->> 'keep_log'),
            (8, 'kinds', 'max_running', NULLIF(kl.max_running, 1000)::text),
            (9, 'kinds', 'rate', COALESCE(rate.said, round(rate.per_s::numeric, 6) || '/s')),
            (10, 'kinds', 'retain', rules.said),
            (1, 'keys', 'max_running', COALESCE(NULLIF(l.max_running, 1), g.max_running)::text),
            (2, 'keys', 'rate', COALESCE(rate.said, round(rate.per_s::numeric, 6) || '/s'))) AS v(n, section, field, value)
 WHERE v.section = $1
 ORDER BY v.n
