-- SPDX-License-Identifier: Apache-2.0
-- Edits queued jobs, all or none; a NULL leaves a value as it is. Returns the new version of each. A job that does not exist has no
-- row, unless $20 wants it to be refused as well. Raises CL003 if a job's state or version ($11, the expected one) forbids the edit.
-- $5 is a time and $6 a delay from now; at most one of the two is given. The same is true of $18 and $19. $7, $8, $12, $17: 'default'
-- = the kind's value; $9, $13, $15, $16, $18: empty = none any more; $10: null means the same. $14: 'next' keeps the change of a
-- running job for its next attempt.
-- params: ids int8[], args text, priority int4, queue text, at text, delay text, max_attempts text, timeout text, tags text[],
-- params: metadata text, expect int4, backoff text, exclusive text, apply text, share text, second text, grace text,
-- params: expires_at text, expires_in text, all bool
-- shows: id number, version number
-- tables: record job
-- method: PATCH
WITH p AS MATERIALIZED (
    SELECT CASE WHEN $2 IS NULL THEN '{}' ELSE jsonb_build_object('args', $2::jsonb) END
           || CASE WHEN $3 IS NULL THEN '{}' ELSE jsonb_build_object('priority', $3) END
           || CASE WHEN $4 IS NULL THEN '{}' ELSE jsonb_build_object('queue', $4) END
           || CASE WHEN $5 IS NULL THEN '{}' ELSE jsonb_build_object('scheduled_at', $5) END
           || CASE WHEN $6 IS NULL THEN '{}' ELSE jsonb_build_object('scheduled_at', clock_timestamp() + $6::interval) END
           || CASE WHEN $7 IS NULL THEN '{}' ELSE jsonb_build_object('max_attempts', NULLIF($7, 'default')::integer) END
           || CASE WHEN $8 IS NULL THEN '{}' ELSE jsonb_build_object('timeout', NULLIF($8, 'default')) END
           || CASE WHEN $9 IS NULL THEN '{}' ELSE jsonb_build_object('tags', NULLIF($9, '{}')) END
           || CASE WHEN $10 IS NULL THEN '{}' ELSE jsonb_build_object('metadata', $10::jsonb) END
           || CASE WHEN $12 IS NULL THEN '{}' ELSE jsonb_build_object('backoff', NULLIF($12, 'default')) END
           || CASE WHEN $13 IS NULL THEN '{}' ELSE jsonb_build_object('exclusive_key', NULLIF($13, '')) END
           || CASE WHEN $15 IS NULL THEN '{}' ELSE jsonb_build_object('share_key', NULLIF($15, '')) END
           || CASE WHEN $16 IS NULL THEN '{}' ELSE jsonb_build_object('second_key', NULLIF($16, '')) END
           || CASE WHEN $17 IS NULL THEN '{}' ELSE jsonb_build_object('grace', NULLIF($17, 'default')) END
           || CASE WHEN $18 IS NULL THEN '{}' ELSE jsonb_build_object('expires_at', NULLIF($18, '')) END
           || CASE WHEN $19 IS NULL THEN '{}' ELSE jsonb_build_object('expires_at', clock_timestamp() + $19::interval) END AS patch
)
SELECT u.id, claimd.edit(u.id, p.patch, expected_version => $11, apply => COALESCE($14, 'now')) AS version
  FROM unnest($1) AS u(id)
 CROSS JOIN p
 WHERE $20 OR EXISTS (SELECT FROM claimd.jobs j WHERE j.id = u.id)
