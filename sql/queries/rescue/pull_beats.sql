-- SPDX-License-Identifier: Apache-2.0
-- PostgreSQL's clock has gone back: beats that lie ahead of it count from now on. A living worker's next beat says better; a
-- dead one is stale after its usual time, not when the clock has come there again.
UPDATE claimd.worker SET beat_at = clock_timestamp(), stale_at = clock_timestamp() + (stale_at - beat_at)
 WHERE NOT dead AND NOT stopped AND beat_at > clock_timestamp() + interval '1 s'
