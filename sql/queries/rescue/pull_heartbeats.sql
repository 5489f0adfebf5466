-- SPDX-License-Identifier: Apache-2.0
-- PostgreSQL's clock has gone back: heartbeats that lie in its future count from now on. The next heartbeat of a living worker
-- corrects this; a dead worker becomes stale after the usual time, instead of when the clock gets there again.
UPDATE claimd.worker SET beat_at = clock_timestamp(), stale_at = clock_timestamp() + (stale_at - beat_at)
 WHERE NOT dead AND NOT stopped AND beat_at > clock_timestamp() + interval '1 s'
