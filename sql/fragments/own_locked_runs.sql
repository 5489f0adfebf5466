-- SPDX-License-Identifier: Apache-2.0
-- own_runs without waiting: rows that another session has locked are left out (INTERFACES rule 4).
id = ANY (ARRAY(SELECT id FROM claimd.job
                            WHERE id = ANY ((SELECT $1)::bigint[]) AND state = 'running'
                              AND fence = $2[width_bucket(fence, $2)]
                              FOR UPDATE SKIP LOCKED))
       AND state = 'running' AND fence = $2[width_bucket(fence, $2)]
