-- SPDX-License-Identifier: Apache-2.0
-- The next results of a map, after the key $2, as JSON. Index: map_done_pkey.
-- params: text, text
SELECT d.key, json_build_object('key', d.key, 'state', d.state, 'result', d.result, 'error', d.error, 'job', d.job_id, 'attempts',
                                d.attempts, 'ended_at', {utc d.ended_at}) AS line
  FROM claimd.map_done d
 WHERE d.map_id = (SELECT id FROM claimd.map WHERE name = $1) AND ($2 IS NULL OR d.key > $2)
 ORDER BY d.key
 LIMIT 5000
