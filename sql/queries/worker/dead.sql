-- SPDX-License-Identifier: Apache-2.0
-- Marks a worker dead: its beats aren't confirmed any more. No row: there is no such worker, or it ended cleanly.
-- params: uuid
UPDATE claimd.worker SET dead = true WHERE worker_id = $1 AND NOT stopped RETURNING token_prefix
