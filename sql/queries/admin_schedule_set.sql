-- SPDX-License-Identifier: Apache-2.0
-- Creates or changes a schedule; NULL means the default. $4 and $11 are JSON; $9, $13, $20, $23 and $25 are texts that interval accepts.
-- params: name text, kind text, cron text, args text, queue text, priority int4, zone text, max_attempts int4, timeout text,
-- params: tags text[], metadata text, missed text, missed_window text, overlap text, exclusive text, share text, backoff text,
-- params: unique text, unique_by text[], unique_for text, unique_states text, on_conflict text, jitter text, second text,
-- params: grace text
-- shows: name text, next_at text
-- tables: record schedule
-- method: PUT
SELECT $1 AS name, {utc due_at} AS next_at
  FROM claimd.schedule_set(name => $1, kind => $2, cron => $3, args => COALESCE($4::jsonb, '{}'),
                           queue => COALESCE($5, 'default'), priority => COALESCE($6, 4), zone => COALESCE($7, 'UTC'),
                           max_attempts => $8, timeout => $9::interval, tags => $10, metadata => $11::jsonb,
                           missed => COALESCE($12, 'latest'), missed_window => COALESCE($13::interval, '1 day'),
                           overlap => COALESCE($14, 'run'), exclusive_key => $15, share_key => $16, backoff => $17,
                           unique_key => $18, unique_by => $19, unique_for => $20::interval, unique_states => $21,
                           on_conflict => COALESCE($22, 'ignore'), jitter => $23::interval,
                           second_key => $24, grace => $25::interval) AS due_at
