-- SPDX-License-Identifier: Apache-2.0
-- Deletes the row of a scheduler that ends cleanly.
-- params: uuid
DELETE FROM claimd.scheduler WHERE scheduler_id = $1
