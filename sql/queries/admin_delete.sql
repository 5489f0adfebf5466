-- SPDX-License-Identifier: Apache-2.0
-- The state that a finished job had; NULL when there is no such job. Raises CL003 where the state forbids it.
-- params: int8
SELECT CASE WHEN EXISTS (SELECT FROM claimd.jobs WHERE id = $1) THEN claimd.delete_job($1) END
