-- SPDX-License-Identifier: Apache-2.0
-- Frees what these runs have held besides their rows. Sent after the statements that end them, in their transaction. Returns jobs that
-- may be claimed from now on: the caller pushes their hints after the commit. $3, $4: the positions that job_claim_limited returned.
-- params: int8[], int8[], tid[], tid[]
SELECT id, queue, kind, priority, ready_at FROM claimd.free_ended($1, $2, $3, $4)
