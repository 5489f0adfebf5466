-- SPDX-License-Identifier: Apache-2.0
-- Announces what the worker's plugins serve. Writes only what differs; in the order of names, so that two workers that start at
-- once don't deadlock. Timeouts in microseconds.
-- params: text[], text[], text[], int8[], int8[], int8[], int8[], text[]
INSERT INTO claimd.kind (name, plugin, version, max_attempts, max_crashes, timeout, at_most_once, backoff)
SELECT name, plugin, version, max_attempts, max_crashes, timeout_us * interval '1 microsecond', at_most_once <> 0,
       NULLIF(backoff, '')
  FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
       AS u(name, plugin, version, max_attempts, max_crashes, timeout_us, at_most_once, backoff)
 ORDER BY name
    ON CONFLICT (name) DO UPDATE
   SET plugin = excluded.plugin, version = excluded.version, max_attempts = excluded.max_attempts,
       max_crashes = excluded.max_crashes, timeout = excluded.timeout, at_most_once = excluded.at_most_once,
       backoff = excluded.backoff, updated_at = clock_timestamp()
 WHERE (kind.plugin, kind.version, kind.max_attempts, kind.max_crashes, kind.timeout, kind.at_most_once, kind.backoff)
       IS DISTINCT FROM (excluded.plugin, excluded.version, excluded.max_attempts, excluded.max_crashes, excluded.timeout,
                         excluded.at_most_once, excluded.backoff)
