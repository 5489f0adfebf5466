-- SPDX-License-Identifier: Apache-2.0
-- The patch that a file ($1) has for each queue, kind or key ($2: its section), by name. With $3, an object with null for each
-- setting, the patch is null where the file has no value, also for names that the file does not have and for which something is set.
-- params: text, text, text
WITH said AS (
    SELECT key COLLATE "C" AS name, value FROM jsonb_each($1::jsonb -> $2)
), known AS (
    SELECT name FROM claimd.queue
     WHERE $2 = 'queues' AND num_nonnulls(weight, max_running, rate, max_open) > 0
    UNION SELECT name FROM claimd.kind WHERE $2 = 'kinds' AND (limited OR set_by_hand <> '{}')
    UNION SELECT name FROM claimd.retention WHERE scope || 's' = $2
    UNION SELECT key FROM claimd.key_limit l
     WHERE $2 = 'keys' AND NOT is_grouped AND NOT EXISTS (SELECT FROM claimd.kind k WHERE k.limited AND l.key = 'kind:' || k.name)
    UNION SELECT prefix || '*' FROM claimd.key_group WHERE $2 = 'keys'
)
SELECT n.name, (COALESCE($3::jsonb, '{}') || COALESCE(s.value, '{}'))::text AS patch
  FROM (SELECT name FROM said UNION SELECT name FROM known WHERE $3 IS NOT NULL AND $1::jsonb ? $2) AS n
  LEFT JOIN said s ON s.name = n.name
 ORDER BY n.name
