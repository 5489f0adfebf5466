-- SPDX-License-Identifier: Apache-2.0
-- Hands claimed jobs back, uncharged (INTERFACES rule 3). Fenced, and only for one worker ($4); locked rows are left out. $2 rises,
-- and $3 is in its order: 1 = a strike, which job.flags count. The rows are behind the feed's cursor: the caller pushes their
-- hints. Returns the accepted fences.
-- params: int8[], int8[], int8[], uuid
WITH back AS (
    UPDATE claimd.job
       SET state = 'available', attempt = attempt - 1, flags = flags + ($3[width_bucket(fence, $2)] * {flag.strike})::smallint
     WHERE {own_locked_runs} AND worker_id = $4
    RETURNING fence
)
SELECT fence FROM back
