-- SPDX-License-Identifier: Apache-2.0
-- Deletes a finished job; returns its last state, or NULL if there is no such job. Raises CL003 if its state forbids it.
-- params: int8
SELECT CASE WHEN EXISTS (SELECT FROM claimd.jobs WHERE id = $1) THEN claimd.delete_job($1) END
