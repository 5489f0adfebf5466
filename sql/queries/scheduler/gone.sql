-- SPDX-License-Identifier: Apache-2.0
-- A clean end.
-- params: uuid
DELETE FROM claimd.scheduler WHERE scheduler_id = $1
