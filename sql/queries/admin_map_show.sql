-- SPDX-License-Identifier: Apache-2.0
-- One map: its definition, and how many of its rows have ended.
-- params: name text
-- shows: name text, state text, rows number, open number, running number, completed number, failed number, cancelled number,
-- shows: concurrency number, rate text, kind text, command json, queue text, query text, key text, last_key text, into_table text,
-- shows: created_at time, created_by text, loaded_at time, paused_at time, cancelled_at time
-- tables: record map
-- none: map {name} not found
SELECT name, state, rows, open, running, completed, failed, cancelled, max_running AS concurrency, rate, kind, template AS command, queue,
       query, key, last_key, into_table, {utc created_at} AS created_at, created_by, {utc loaded_at} AS loaded_at,
       {utc paused_at} AS paused_at, {utc cancelled_at} AS cancelled_at
  FROM claimd.maps
 WHERE name = $1
