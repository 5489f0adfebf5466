-- SPDX-License-Identifier: Apache-2.0
-- Worker processes, the live ones first. A dead worker, whose heartbeats had ceased, is also `stopped` once nothing runs under it any
-- more. $1: includes workers that have ended.
-- params: all bool
-- shows: host text, pid number, state text, beat_age_s seconds, running number, slots number, queues text list, kinds text list,
-- shows: refused text list, refusals json hidden, version text wide, started_at time wide, worker_id text wide
-- tables: workers
SELECT host, pid,
       CASE WHEN dead AND stopped THEN 'rescued' WHEN dead THEN 'dead' WHEN stopped THEN 'stopped' WHEN stale_at < clock_timestamp() THEN 'stale'
            WHEN quiet THEN 'quiet' ELSE 'live' END AS state,
       round(extract(epoch FROM clock_timestamp() - beat_at), 1) AS beat_age_s,
       running, slots,
       array_to_string(queues, ',') AS queues, array_to_string(kinds, ',') AS kinds,
       (SELECT string_agg(split_part(r, ': ', 1), ',') FROM unnest(refused) r) AS refused, to_json(refused) AS refusals, version,
       {utc_seconds started_at} AS started_at, worker_id
  FROM claimd.worker
 WHERE $1 OR NOT (stopped OR dead)
 ORDER BY stopped OR dead, host, pid
