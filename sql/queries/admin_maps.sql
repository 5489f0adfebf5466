-- SPDX-License-Identifier: Apache-2.0
-- All maps and how many of their rows have ended, newest first. Index: map_count_pkey.
-- shows: name text, state text, rows number, open number, running number, completed number, failed number, cancelled number,
-- shows: created_at time, kind text wide
-- tables: maps
SELECT name, state, rows, open, running, completed, failed, cancelled, {utc created_at} AS created_at, kind FROM claimd.maps
 ORDER BY id DESC
