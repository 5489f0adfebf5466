-- SPDX-License-Identifier: Apache-2.0
-- admin_enqueue for a job with a unique key: returns its id, and whether it was inserted now. In either case it is then in the batch.
-- params: kind text, args text, queue text, priority int4, at text, delay text, max_attempts int4, timeout text, tags text[],
-- params: backoff text, metadata text, exclusive text, share text, after int8[], if_dead text, batch int8, expires_at text,
-- params: expires_in text, second text, grace text, unique text, unique_by text[], unique_for text, unique_states text,
-- params: on_conflict text
-- shows: id number, inserted bool
-- tables: record job
-- says: {id}
-- method: POST
SELECT CASE WHEN $16 IS NULL THEN id ELSE claimd.batch_add($16, id) END AS id, inserted
  FROM claimd.enqueue_unique(kind => $1, args => COALESCE($2::jsonb, '{}'), queue => COALESCE($3, 'default'),
                             priority => COALESCE($4, 4), scheduled_at => COALESCE($5::timestamptz, clock_timestamp() + $6::interval),
                             max_attempts => $7, timeout => $8::interval, tags => $9, backoff => $10, metadata => $11::jsonb,
                             exclusive_key => $12, share_key => $13, after => $14, if_dead => $15,
                             expires_at => COALESCE($17::timestamptz, clock_timestamp() + $18::interval), second_key => $19,
                             grace => $20::interval, unique_key => $21, unique_by => $22, unique_for => $23::interval,
                             unique_states => $24, on_conflict => COALESCE($25, 'error'))
