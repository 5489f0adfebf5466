-- SPDX-License-Identifier: Apache-2.0
-- Deletes what was stored about running jobs that have just ended. Sent after the statements that ended them, in their transaction.
-- params: int8[]
DELETE FROM claimd.job_live l
 WHERE l.id = ANY ((SELECT $1)::bigint[]) AND (SELECT true FROM claimd.job j WHERE j.id = l.id) IS NULL
