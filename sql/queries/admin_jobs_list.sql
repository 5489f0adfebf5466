-- SPDX-License-Identifier: Apache-2.0
-- Newest jobs first, open and finished; every filter may be NULL. Both tables have an index on id.
-- params: text, text, text, int4
SELECT id, kind, queue, state, priority, attempt,
       to_char(ready_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ready_at,
       to_char(finalized_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS finalized_at,
       error
  FROM claimd.jobs
 WHERE ($1 IS NULL OR state = $1) AND ($2 IS NULL OR kind = $2) AND ($3 IS NULL OR queue = $3)
 ORDER BY id DESC
 LIMIT $4
