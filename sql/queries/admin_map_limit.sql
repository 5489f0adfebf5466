-- SPDX-License-Identifier: Apache-2.0
-- Limits how many jobs of a map may run at a time, and how many may start per unit of time ("50/m"). NULL leaves a limit as it is.
-- params: name text, concurrency text 1..1000 or none, rate text rate or none
-- shows: name text, concurrency number, rate text
-- tables: record map
-- none: map {name} not found
-- method: POST
SELECT m.name, NULLIF(COALESCE($2, m.max_running::text), 'none')::integer AS concurrency, NULLIF(COALESCE($3, m.rate), 'none') AS rate
  FROM claimd.map m
 CROSS JOIN LATERAL claimd.map_limit(m.name, $2, $3)
 WHERE m.name = $1
