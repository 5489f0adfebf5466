-- SPDX-License-Identifier: Apache-2.0
-- The jobs of a batch: those that failed first, then the open ones, at most 100. `after`: the jobs that a waiting job waits for.
-- params: batch int8 id
-- shows: id number, kind text, state text, after text long, attempt number, error text long
-- tables: record batch = batches, jobs
-- none: batch {batch} not found
SELECT m.job_id AS id, COALESCE(j.kind, '') AS kind,
       COALESCE(j.state, m.state) AS state,
       w.after_ids AS after, j.attempt, j.error
  FROM (SELECT job_id, state FROM claimd.batch_job WHERE batch_id = $1
         ORDER BY state IS DISTINCT FROM 'discarded', state IS NOT NULL, job_id LIMIT 100) m
  LEFT JOIN LATERAL (SELECT kind, state, attempt, error FROM claimd.jobs WHERE id = m.job_id LIMIT 1) j ON true
  LEFT JOIN LATERAL (SELECT string_agg(a.after_id::text, ' ' ORDER BY a.after_id) AS after_ids
                       FROM claimd.job_after a WHERE a.job_id = m.job_id) w ON true
 ORDER BY m.state IS DISTINCT FROM 'discarded', m.state IS NOT NULL, m.job_id
