-- SPDX-License-Identifier: Apache-2.0
-- Frees what these runs have held besides their rows: after the statements that end them, in their transaction. Returns jobs that
-- may be claimed from now on: the caller pushes their hints after the commit.
-- params: int8[], int8[]
SELECT id, queue, kind, priority, ready_at FROM claimd.free_ended($1, $2)
