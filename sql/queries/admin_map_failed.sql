-- SPDX-License-Identifier: Apache-2.0
-- A map, and the first hundred of its rows that did not complete, with the end of the last attempt's log. Index: map_done_failed.
-- params: name text
-- shows: key text, job number, state text, attempts number, ended_at time, error text long, log text prose
-- tables: record map = map_show, failed
-- none: map {name} not found
SELECT d.key, d.job_id AS job, d.state, d.attempts, {utc d.ended_at} AS ended_at, d.error,
       (SELECT a.log_tail FROM claimd.job_attempt a WHERE a.job_id = d.job_id AND a.log_tail IS NOT NULL ORDER BY a.fence DESC LIMIT 1) AS log
  FROM claimd.map m
  JOIN claimd.map_done d ON d.map_id = m.id AND d.state <> 'completed'
 WHERE m.name = $1
 ORDER BY d.key
 LIMIT 100
