-- SPDX-License-Identifier: Apache-2.0
-- Live workers: they have neither stopped nor been declared dead, and their heartbeats are fresh.
CREATE OR REPLACE VIEW live_worker AS
SELECT worker_id, started_at, beat_at, stale_at, pid, slots, running, quiet, host, version, queues, kinds, spare_since, ready_oldest
  FROM worker
 WHERE NOT dead AND NOT stopped AND stale_at > clock_timestamp();

REVOKE ALL ON live_worker FROM PUBLIC, {roles};
GRANT SELECT ON live_worker TO claimd_admin, claimd_reader;
