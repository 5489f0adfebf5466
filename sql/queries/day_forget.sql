-- SPDX-License-Identifier: Apache-2.0
-- What is kept no longer than the history's days ($1): failed attempts, fires of schedules, and rows of workers that ended long
-- ago. A running row under an unknown worker is found by rescue_page all the same. And what was kept of running jobs that a program
-- of an older release, or somebody by hand, has ended.
-- params: int4
WITH old_attempts AS (
    DELETE FROM claimd.job_attempt WHERE ended_at < now() - make_interval(days => $1)
), old_fires AS (
    DELETE FROM claimd.schedule_fire WHERE fired_at < now() - make_interval(days => $1)
), unwatched AS (
    DELETE FROM claimd.job_live l WHERE NOT EXISTS (SELECT FROM claimd.job j WHERE j.id = l.id)
)
DELETE FROM claimd.worker WHERE stopped AND beat_at < now() - make_interval(days => $1)
