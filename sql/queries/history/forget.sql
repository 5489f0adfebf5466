-- SPDX-License-Identifier: Apache-2.0
-- Deletes failed attempts, edits and predecessors that are older than the history's days ($1) and the longest rule; fires of
-- schedules and rows of workers that ended more than $1 days ago; and records of days that were dropped. (rescue_page finds a running
-- row under an unknown worker all the same.) Also deletes what was stored about running jobs that a program of an older release, or a
-- manual statement, has ended; and unique keys that no longer refuse any job. A session that takes over such a key meanwhile changes
-- its job_id, so the key stays; a locked one is left for the next time.
-- params: int4
WITH old_attempts AS (
    DELETE FROM claimd.job_attempt WHERE ended_at < now() - make_interval(days => claimd.longest_days($1))
), old_edits AS (
    DELETE FROM claimd.job_edit WHERE edited_at < now() - make_interval(days => claimd.longest_days($1))
), old_waits AS (
    DELETE FROM claimd.job_waited w
     WHERE w.ended_at < now() - make_interval(days => claimd.longest_days($1))
       AND NOT EXISTS (SELECT FROM claimd.job j WHERE j.id = w.job_id)
), old_fires AS (
    DELETE FROM claimd.schedule_fire WHERE fired_at < now() - make_interval(days => $1)
), dropped AS (
    DELETE FROM claimd.history_day d WHERE to_regclass('claimd.job_history_' || to_char(d.day, 'YYYYMMDD')) IS NULL
), unwatched AS (
    DELETE FROM claimd.job_live l WHERE NOT EXISTS (SELECT FROM claimd.job j WHERE j.id = l.id)
), idle_keys AS MATERIALIZED (
    SELECT k.key, k.job_id FROM claimd.job_key k
     WHERE k.expires_at < clock_timestamp()
        OR (k.states IN ('queued', 'open') AND NOT EXISTS (SELECT FROM claimd.job j WHERE j.id = k.job_id))
), free_keys AS MATERIALIZED (
    SELECT k.key, k.job_id FROM claimd.job_key k JOIN idle_keys i ON i.key = k.key AND i.job_id = k.job_id
       FOR UPDATE OF k SKIP LOCKED
), forgotten_keys AS (
    DELETE FROM claimd.job_key k USING free_keys f WHERE k.key = f.key AND k.job_id = f.job_id
)
DELETE FROM claimd.worker WHERE stopped AND beat_at < now() - make_interval(days => $1)
