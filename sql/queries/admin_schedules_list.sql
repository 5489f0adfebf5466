-- SPDX-License-Identifier: Apache-2.0
-- All schedules, by name.
-- shows: name text, state text, cron text, zone text, kind text, queue text wide, next_at time, fired_at time, missed text wide,
-- shows: overlap text wide, error text long
-- tables: schedules
SELECT s.name, CASE WHEN s.paused THEN 'paused' WHEN s.error IS NOT NULL THEN 'failing' ELSE 'active' END AS state, s.cron, s.zone,
       s.kind, s.queue, CASE WHEN NOT s.paused THEN {utc s.next_at} END AS next_at,
       {utc s.fired_at} AS fired_at, s.missed, s.overlap, s.error
  FROM claimd.schedule s ORDER BY s.name
