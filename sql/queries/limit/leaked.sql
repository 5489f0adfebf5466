-- SPDX-License-Identifier: Apache-2.0
-- Frees keys and places that no run holds, and returns jobs that may be claimed from now on.
SELECT id, queue, kind, priority, ready_at FROM claimd.free_leaked()
