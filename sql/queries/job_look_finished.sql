-- SPDX-License-Identifier: Apache-2.0
-- How these runs ended, if they are in the history. $3, the earliest start of an attempt among them, leaves out the days
-- before it.
-- params: int8[], int8[], timestamptz
SELECT fence, state FROM claimd.job_history WHERE id = ANY ($1) AND fence = ANY ($2) AND finalized_at >= $3
