-- SPDX-License-Identifier: Apache-2.0
ALTER TABLE scheduler DROP COLUMN lap_us, DROP COLUMN lap_queue, DROP COLUMN lanes;
