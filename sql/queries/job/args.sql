-- SPDX-License-Identifier: Apache-2.0
-- The data that did not come with the claim of one run: large args or metadata, or those of a job with a checkpoint or of a job that
-- has waited for others; also the checkpoint and the predecessors. No row: the run is stale. NULL for a value that is too long for
-- any handler, in rows that were stored before such values were refused (flag 1024).
-- params: int8, int8
SELECT CASE WHEN j.flags & {flag.long} = 0 THEN j.args::text ELSE claimd.text_within(j.args, 1048576) END,
       CASE WHEN j.flags & {flag.long} = 0 THEN j.metadata::text ELSE claimd.text_within(j.metadata, 65536) END,
       l.checkpoint::text, j.metadata IS NOT NULL,
       CASE WHEN j.flags & {flag.waits} <> 0 THEN claimd.predecessors_text(j.id, 262144) END
  FROM claimd.job j
  LEFT JOIN claimd.job_live l ON l.id = j.id
 WHERE j.id = $1 AND j.fence = $2 AND j.state = 'running'
