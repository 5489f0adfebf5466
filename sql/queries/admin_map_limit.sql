-- SPDX-License-Identifier: Apache-2.0
-- How many jobs of a map may run at a time, and start in a time ("50/m"). NULL: stays.
-- params: name text, concurrency int4 1..1000, rate text rate or none
-- shows: name text, concurrency number, rate text
-- tables: record map
-- none: map {name} not found
-- method: POST
SELECT m.name, COALESCE($2, m.max_running) AS concurrency, NULLIF(COALESCE($3, m.rate), 'none') AS rate
  FROM claimd.map m
 CROSS JOIN LATERAL claimd.map_limit(m.name, $2, $3)
 WHERE m.name = $1
