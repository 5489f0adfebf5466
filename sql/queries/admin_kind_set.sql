-- SPDX-License-Identifier: Apache-2.0
-- Sets the defaults of a kind, for jobs that have no value of their own. NULL leaves a default as it is, 'default' restores the
-- plugin's value. $4 and $7 are texts that interval accepts.
-- params: name text, max_attempts text 1..2147483647 or default, max_crashes text 1..2147483647 or default,
-- params: timeout text duration 366d or default, backoff text backoff, keep_log text all|failed|default,
-- params: grace text duration 1h or default
-- then: record kind = kind_settings
-- method: POST
SELECT claimd.set_kind($1,
           CASE WHEN $2 IS NULL THEN '{}' ELSE jsonb_build_object('max_attempts', NULLIF($2, 'default')::integer) END
           || CASE WHEN $3 IS NULL THEN '{}' ELSE jsonb_build_object('max_crashes', NULLIF($3, 'default')::integer) END
           || CASE WHEN $4 IS NULL THEN '{}' ELSE jsonb_build_object('timeout', NULLIF($4, 'default')) END
           || CASE WHEN $5 IS NULL THEN '{}' ELSE jsonb_build_object('backoff', NULLIF($5, 'default')) END
           || CASE WHEN $6 IS NULL THEN '{}' ELSE jsonb_build_object('keep_log', CASE $6 WHEN 'all' THEN true WHEN 'failed' THEN false END) END
           || CASE WHEN $7 IS NULL THEN '{}' ELSE jsonb_build_object('grace', NULLIF($7, 'default')) END)
