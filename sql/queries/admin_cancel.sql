-- SPDX-License-Identifier: Apache-2.0
-- Cancels a job; returns its new state, or NULL if there is no such job. Raises CL003 if its state forbids it.
-- params: int8
SELECT CASE WHEN EXISTS (SELECT FROM claimd.jobs WHERE id = $1) THEN claimd.cancel($1) END
