-- SPDX-License-Identifier: Apache-2.0
-- Ends those of the jobs that are available again although their cancel was requested while they ran. Sent right after the statement
-- that made them available, in its transaction, so no other session has seen them available. Index: job_live_cancel.
-- params: int8[]
WITH asked AS MATERIALIZED (
    SELECT l.id, l.fence FROM claimd.job_live l WHERE l.cancel_requested AND l.id = ANY ((SELECT $1)::bigint[])
), gone AS (
    DELETE FROM claimd.job j
     WHERE j.id = ANY (ARRAY(SELECT a.id FROM asked a)) AND j.fence = ANY (ARRAY(SELECT a.fence FROM asked a)) AND j.state = 'available'
    RETURNING j.*
), unwatched AS (
    DELETE FROM claimd.job_live l USING gone g WHERE l.id = g.id
)
INSERT INTO claimd.job_history ({carried}, crashes, state, error)
SELECT {carried}, crashes, 'cancelled', 'cancelled while it ran'
  FROM gone
RETURNING id
