-- SPDX-License-Identifier: Apache-2.0
-- Retries a job, or makes it due; returns its new state, or NULL if there is no such job. Raises CL003 if its state forbids
-- it. $2: even if it is completed.
-- params: int8, bool
SELECT CASE WHEN EXISTS (SELECT FROM claimd.jobs WHERE id = $1) AND claimd.retry($1, $2) IS NOT NULL THEN 'available' END
