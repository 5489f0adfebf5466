-- SPDX-License-Identifier: Apache-2.0
-- Kinds as workers announced them, and who serves them now.
SELECT k.name, k.plugin, k.version, k.paused,
       (SELECT count(*) FROM claimd.worker w
         WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > clock_timestamp() AND k.name = ANY (w.kinds)) AS workers,
       k.max_attempts, k.max_crashes, extract(epoch FROM k.timeout)::float8 AS timeout_s, k.at_most_once,
       to_char(k.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated_at
  FROM claimd.kind k
 ORDER BY k.name
