-- SPDX-License-Identifier: Apache-2.0
-- What is kept no longer than the history's days ($1), or the longest rule: failed attempts, edits and predecessors; fires of schedules, and rows of
-- workers that ended long ago. A running row under an unknown worker is found by rescue_page all the same. And what was kept of running
-- jobs that a program of an older release, or somebody by hand, has ended. And unique keys that refuse nobody any more: whoever takes one
-- over meanwhile changes its job_id, and keeps it; one that is locked waits for the next time.
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
