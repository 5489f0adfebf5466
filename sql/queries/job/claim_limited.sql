-- SPDX-License-Identifier: Apache-2.0
-- Claims jobs that have a limit and are left out by job_claim, as far as their limits allow. $4, in rising order: those of the jobs
-- that no runner waits for. Alone in its transaction, because others wait for what it locks. Returns the columns of job_claim, and
-- where the rows are that the run holds.
-- params: int8[], uuid, text[], int8[]
SELECT {claimed_columns}, key_row, place, second_row
  FROM claimd.claim_limited($1, $2, $3, $4)
