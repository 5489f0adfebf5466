-- SPDX-License-Identifier: Apache-2.0
-- What did not come with the claim of one run: large arguments or metadata, or those of a job with a checkpoint. No row: the run is
-- stale. Each is cut behind what a runner takes: jsonb_send() is the text behind one octet, its version.
-- params: int8, int8
SELECT substring(jsonb_send(j.args) FROM 2 FOR 1048577), substring(jsonb_send(j.metadata) FROM 2 FOR 65537),
       substring(jsonb_send(l.checkpoint) FROM 2 FOR 65537)
  FROM claimd.job j
  LEFT JOIN claimd.job_live l ON l.id = j.id
 WHERE j.id = $1 AND j.fence = $2 AND j.state = 'running'
