-- SPDX-License-Identifier: Apache-2.0
-- The reports of live workers, from their last heartbeat. A heartbeat in the future means that PostgreSQL's clock has gone back since.
SELECT host, pid, lock_nodes, lock_nodes_voting, uncommitted,
       CASE WHEN uncommitted > 0 THEN uncommitted_us + GREATEST(0, (extract(epoch FROM clock_timestamp() - beat_at) * 1000000)::int8)
            ELSE 0 END AS uncommitted_us,
       trouble, clock_ahead_us,
       (extract(epoch FROM beat_at - clock_timestamp()) * 1000000)::int8 AS future_us
  FROM claimd.worker
 WHERE NOT dead AND NOT stopped AND stale_at > clock_timestamp()
 ORDER BY host, pid
