-- SPDX-License-Identifier: Apache-2.0
-- The schedules of a file, as parameters of admin_schedule_set. PostgreSQL reads the file because it keeps all digits of numbers.
-- params: text
SELECT e->>'name', e->>'kind', e->>'cron', (e->'args')::text, e->>'queue', e->>'priority', e->>'zone', e->>'max_attempts',
       e->>'timeout', (SELECT array_agg(t) FROM jsonb_array_elements_text(NULLIF(e->'tags', 'null')) t)::text,
       NULLIF(e->'metadata', 'null')::text, e->>'missed', e->>'missed_window', e->>'overlap', e->>'exclusive_key',
       e->>'share_key', e->>'backoff', e->>'unique_key',
       (SELECT array_agg(t) FROM jsonb_array_elements_text(NULLIF(e->'unique_by', 'null')) t)::text, e->>'unique_for',
       e->>'unique_states', e->>'on_conflict', e->>'jitter', e->>'second_key', e->>'grace'
  FROM jsonb_array_elements($1::jsonb->'schedules') WITH ORDINALITY AS file(e, n) ORDER BY n
