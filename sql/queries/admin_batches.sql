-- SPDX-License-Identifier: Apache-2.0
-- Batches with their counts, the newest first, or only the given one.
-- params: batch int8 id
-- shows: id number, name text, state text, jobs number, open number, succeeded number, failed number, cancelled number,
-- shows: opened_at time, over_at time, follow_up_job number wide, outcome_job number wide, error text long
-- tables: batches
SELECT b.id, b.name, b.state, b.jobs, b.open, b.succeeded, b.failed, b.cancelled,
       {utc b.opened_at} AS opened_at,
       {utc b.over_at} AS over_at, b.follow_up_job, b.outcome_job,
       b.error
  FROM claimd.batches b
 WHERE $1 IS NULL OR b.id = $1
 ORDER BY b.id DESC
 LIMIT 100
