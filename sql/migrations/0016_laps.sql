-- SPDX-License-Identifier: Apache-2.0
-- What a scheduler says of its lanes, for doctor: docs/decisions/0023-laps.md.
ALTER TABLE scheduler
    ADD COLUMN lanes bigint NOT NULL DEFAULT 0,
    ADD COLUMN lap_queue text NOT NULL DEFAULT '', -- the queue with the longest laps; '': none is walked in laps
    ADD COLUMN lap_us bigint NOT NULL DEFAULT 0;

-- ---- down ----
ALTER TABLE scheduler DROP COLUMN lap_us, DROP COLUMN lap_queue, DROP COLUMN lanes;
