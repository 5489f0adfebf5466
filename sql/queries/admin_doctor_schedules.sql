-- SPDX-License-Identifier: Apache-2.0
-- How many schedules there are; how many of them fail, with one as an example; how many have been due for more than a minute without
-- any scheduler looking at them; and how many wait beyond their next tick, with the first of these.
WITH beyond AS (
    SELECT schedule FROM claimd.schedules_beyond()
)
SELECT count(*) AS schedules, count(error) AS failing, min(name || ': ' || error) AS example,
       count(*) FILTER (WHERE NOT paused AND wake_at < clock_timestamp() - interval '1 minute') AS waiting,
       (SELECT count(*) FROM beyond) AS beyond, (SELECT min(schedule) FROM beyond) AS beyond_example
  FROM claimd.schedule
