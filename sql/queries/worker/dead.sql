-- SPDX-License-Identifier: Apache-2.0
-- Marks a worker dead: its heartbeats are not confirmed any more. No row if there is no such worker, or it has ended cleanly.
-- params: uuid
UPDATE claimd.worker SET dead = true WHERE worker_id = $1 AND NOT stopped RETURNING token_prefix
