-- SPDX-License-Identifier: Apache-2.0
-- The commands that live workers allow maps to run: name, template, host, and whether the worker serves the queue $1.
-- params: text
SELECT DISTINCT c.key AS name, c.value AS template, w.host, $1 = ANY (w.queues) AS is_here
  FROM claimd.worker w
 CROSS JOIN LATERAL jsonb_each(w.commands) AS c
 WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > clock_timestamp() AND 'command_' || c.key = ANY (w.kinds)
 ORDER BY name, host
