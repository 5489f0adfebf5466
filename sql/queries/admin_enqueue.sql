-- SPDX-License-Identifier: Apache-2.0
-- Enqueues one job; returns its id. $5 is a time and $6 a delay, as texts that timestamptz and interval accept; at most one of the
-- two is given. The same is true of $17 and $18, its expiry. $16: adds the job to this batch, if not NULL.
-- params: kind text, args text, queue text, priority int4, at text, delay text, max_attempts int4, timeout text, tags text[],
-- params: backoff text, metadata text, exclusive text, share text, after int8[], if_dead text, batch int8, expires_at text,
-- params: expires_in text, second text, grace text
-- shows: id number
-- tables: record job
-- says: {id}
-- method: POST
SELECT CASE WHEN $16 IS NULL THEN e.id ELSE claimd.batch_add($16, e.id) END AS id
  FROM claimd.enqueue(kind => $1, args => COALESCE($2::jsonb, '{}'), queue => COALESCE($3, 'default'), priority => COALESCE($4, 4),
                      scheduled_at => COALESCE($5::timestamptz, clock_timestamp() + $6::interval), max_attempts => $7,
                      timeout => $8::interval, tags => $9, backoff => $10, metadata => $11::jsonb,
                      exclusive_key => $12, share_key => $13, after => $14, if_dead => $15,
                      expires_at => COALESCE($17::timestamptz, clock_timestamp() + $18::interval), second_key => $19,
                      grace => $20::interval) AS e(id)
