-- SPDX-License-Identifier: Apache-2.0
-- Edits queued jobs, all or none; NULL = stays as it is. The new version of each; no row of a job that is not there, unless $17 wants
-- that refused as well. Raises CL003 where its state or version ($11, the expected one) forbids it. $5 is a time, $6 a delay from now;
-- at most one of both is given. $7, $8, $12: 'default' = what the kind says; $9, $13, $15, $16: empty = none any more; $10: null.
-- $14: 'next' keeps the change of a running job for its next attempt.
-- params: int8[], text, int4, text, text, text, text, text, text[], text, int4, text, text, text, text, text, bool
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
           || CASE WHEN $16 IS NULL THEN '{}' ELSE jsonb_build_object('second_key', NULLIF($16, '')) END AS patch
)
SELECT u.id, claimd.edit(u.id, p.patch, expected_version => $11, apply => COALESCE($14, 'now')) AS version
  FROM unnest($1) AS u(id)
 CROSS JOIN p
 WHERE $17 OR EXISTS (SELECT FROM claimd.jobs j WHERE j.id = u.id)
