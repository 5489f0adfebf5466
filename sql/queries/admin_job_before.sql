-- SPDX-License-Identifier: Apache-2.0
-- The jobs that a job waits or has waited for, those that are open first; `state`: what they are now, or how they ended.
-- params: id int8 id
-- shows: job number, kind text, state text
SELECT p.id AS job, p.kind, p.state
  FROM claimd.predecessors($1) AS p
 ORDER BY p.state IN ('completed', 'discarded', 'cancelled'), p.id
 LIMIT 100
