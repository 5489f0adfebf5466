-- SPDX-License-Identifier: Apache-2.0
-- Handler files that live workers do not serve, and on which hosts; the files that most workers refuse come first.
SELECT r.refused, string_agg(w.host || ' (pid ' || w.pid || ')', ', ' ORDER BY w.host, w.pid) AS workers
  FROM claimd.worker w, unnest(w.refused) AS r(refused)
 WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > clock_timestamp()
 GROUP BY r.refused
 ORDER BY count(*) DESC, r.refused
 LIMIT 20
