-- SPDX-License-Identifier: Apache-2.0
-- Marks a worker as stopped, after a clean end.
-- params: uuid
UPDATE claimd.worker SET stopped = true, running = 0, held_fences = '{}' WHERE worker_id = $1
