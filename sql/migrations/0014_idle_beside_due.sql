-- SPDX-License-Identifier: Apache-2.0
-- Idle beside due (inv.L9): what workers say of their idle slots, for the leader's survey and for `claimctl db verify`.
ALTER TABLE worker
    ADD COLUMN spare_least integer NOT NULL DEFAULT 0, -- idle slots that no job was meant for: the least between its last two beats
    ADD COLUMN spare_since timestamptz, -- since when each beat has said at least 1; NULL: the last one did not
    ADD COLUMN ready_oldest interval NOT NULL DEFAULT '0'; -- at its last beat, the wait of the oldest claimed job for a runner

-- ---- down ----
ALTER TABLE worker
    DROP COLUMN spare_least,
    DROP COLUMN spare_since,
    DROP COLUMN ready_oldest;
