-- SPDX-License-Identifier: Apache-2.0
-- Takes away what was kept of running jobs that have just ended: after that, in its transaction.
-- params: int8[]
DELETE FROM claimd.job_live l
 WHERE l.id = ANY ((SELECT $1)::bigint[]) AND (SELECT true FROM claimd.job j WHERE j.id = l.id) IS NULL
