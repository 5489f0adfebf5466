-- SPDX-License-Identifier: Apache-2.0
-- What did not come with the claim of one run: large arguments or metadata, or those of a job with a checkpoint. No row: the run is
-- stale.
-- params: int8, int8
SELECT j.args::text, j.metadata::text, l.checkpoint::text
  FROM claimd.job j
  LEFT JOIN claimd.job_live l ON l.id = j.id
 WHERE j.id = $1 AND j.fence = $2 AND j.state = 'running'
