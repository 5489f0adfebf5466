-- SPDX-License-Identifier: Apache-2.0
-- Claims jobs that have a limit and are left out by job_claim, as far as their limits allow; $4 rises: those that no runner waits for.
-- Alone in its transaction: what it locks, others wait for. Same columns as job_claim, and what it holds.
-- params: int8[], uuid, text[], int8[]
SELECT {claimed_columns}, key_row, place, second_row
  FROM claimd.claim_limited($1, $2, $3, $4)
