-- SPDX-License-Identifier: Apache-2.0
-- Asks producers for a NOTIFY, or stops asking; the trigger job_inserted reads the flag.
-- params: bool
UPDATE claimd.cluster SET hungry = $1 WHERE hungry <> $1
