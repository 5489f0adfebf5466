-- SPDX-License-Identifier: Apache-2.0
-- Edits a queued job; NULL = stays as it is. The new version; NULL when there is no such job. Raises CL003 where its state or version
-- ($11, the expected one) forbids it. $5 is a time, $6 a delay from now; at most one of both is given.
-- $7, $8, $12: 'default' = what the kind says; $9, $13, $15: empty = none any more; $10: null.
-- $14: 'next' keeps the change of a running job for its next attempt.
-- params: int8, text, int4, text, text, text, text, text, text[], text, int4, text, text, text, text
SELECT CASE WHEN EXISTS (SELECT FROM claimd.jobs WHERE id = $1) THEN
           claimd.edit($1, expected_version => $11, apply => COALESCE($14, 'now'), patch =>
               CASE WHEN $2 IS NULL THEN '{}' ELSE jsonb_build_object('args', $2::jsonb) END
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
               || CASE WHEN $15 IS NULL THEN '{}' ELSE jsonb_build_object('share_key', NULLIF($15, '')) END)
       END AS version
