-- SPDX-License-Identifier: Apache-2.0
-- What live workers said of themselves with their last beat. A beat in the future: our clock went back since.
SELECT host, pid, lock_nodes, lock_nodes_voting, uncommitted,
       CASE WHEN uncommitted > 0 THEN uncommitted_us + GREATEST(0, (extract(epoch FROM clock_timestamp() - beat_at) * 1000000)::int8)
            ELSE 0 END AS uncommitted_us,
       trouble, clock_ahead_us,
       (extract(epoch FROM beat_at - clock_timestamp()) * 1000000)::int8 AS future_us
  FROM claimd.worker
 WHERE NOT dead AND NOT stopped AND stale_at > clock_timestamp()
 ORDER BY host, pid
