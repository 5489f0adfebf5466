-- SPDX-License-Identifier: Apache-2.0
-- Asks producers for a NOTIFY, or no longer (the trigger job_inserted reads it).
-- params: bool
UPDATE claimd.cluster SET hungry = $1 WHERE hungry <> $1
