-- SPDX-License-Identifier: Apache-2.0
-- How these runs ended, if they are in the history. $3, the earliest start of an attempt among them, leaves out the days
-- before it; a day more, since the clock may have gone back meanwhile (fault.D8).
-- $4: under which worker.
-- params: int8[], int8[], timestamptz, uuid
SELECT fence, state FROM claimd.job_history WHERE id = ANY ($1) AND fence = ANY ($2) AND finalized_at >= $3 - interval '1 day' AND worker_id = $4
