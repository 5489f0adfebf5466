-- SPDX-License-Identifier: Apache-2.0
-- How many schedules there are, how many of them fail, with one of those as an example, and how many have waited for more than a
-- minute for somebody to look at them.
SELECT count(*) AS schedules, count(error) AS failing, min(name || ': ' || error) AS example,
       count(*) FILTER (WHERE NOT paused AND wake_at < clock_timestamp() - interval '1 minute') AS waiting
  FROM claimd.schedule
