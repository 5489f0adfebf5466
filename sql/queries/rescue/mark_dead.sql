-- SPDX-License-Identifier: Apache-2.0
-- Marks these workers dead if their heartbeats are still stale; committed before any of their jobs is moved. A heartbeat on such a
-- row is not confirmed. Returns the workers that were marked.
-- params: text[]
UPDATE claimd.worker SET dead = true
 WHERE worker_id = ANY ($1::uuid[]) AND NOT dead AND NOT stopped AND stale_at < now()
RETURNING worker_id::text, host, (EXTRACT(EPOCH FROM now() - beat_at) * 1000)::int8 AS silent_ms
