-- SPDX-License-Identifier: Apache-2.0
-- Gives claimed jobs back, uncharged (INTERFACES rule 3). Fenced, and of one worker ($3); locked rows are left out.
-- They lie behind the feed's cursor: the caller pushes their hints. Returns the fences that were accepted.
-- params: int8[], int8[], uuid
WITH back AS (
    UPDATE claimd.job
       SET state = 'available', attempt = attempt - 1
     WHERE id = ANY (ARRAY(SELECT id FROM claimd.job
                            WHERE id = ANY ((SELECT $1)::bigint[]) AND state = 'running'
                              AND fence = $2[width_bucket(fence, $2)]
                              FOR UPDATE SKIP LOCKED))
       AND state = 'running' AND fence = $2[width_bucket(fence, $2)] AND worker_id = $3
    RETURNING fence
)
SELECT fence FROM back
