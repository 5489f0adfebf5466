-- SPDX-License-Identifier: Apache-2.0
-- Frees what is held by no run, and returns jobs that may be claimed from now on.
SELECT id, queue, kind, priority, ready_at FROM claimd.free_leaked()
