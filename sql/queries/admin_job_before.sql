-- SPDX-License-Identifier: Apache-2.0
-- The jobs that a job waits for or has waited for, open ones first; `state`: their current or final state.
-- params: id int8 id
-- shows: job number, kind text, state text
SELECT p.id AS job, p.kind, p.state
  FROM claimd.predecessors($1) AS p
 ORDER BY p.state IN ('completed', 'discarded', 'cancelled'), p.id
 LIMIT 100
