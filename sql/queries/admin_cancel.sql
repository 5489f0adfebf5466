-- SPDX-License-Identifier: Apache-2.0
-- The new state; NULL when there is no such job. Raises CL003 where the state forbids it.
-- params: int8
SELECT CASE WHEN EXISTS (SELECT FROM claimd.jobs WHERE id = $1) THEN claimd.cancel($1) END
