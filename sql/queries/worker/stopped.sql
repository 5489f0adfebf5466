-- SPDX-License-Identifier: Apache-2.0
-- A clean end.
-- params: uuid
UPDATE claimd.worker SET stopped = true, running = 0, held_fences = '{}' WHERE worker_id = $1
