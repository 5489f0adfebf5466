-- SPDX-License-Identifier: Apache-2.0
-- A map by its name, with what claimctl needs to load and follow it.
-- params: text
SELECT id, state, rows, open, running, completed, failed, cancelled, query, key, kind, template, queue, last_key, into_table,
       loaded_at IS NOT NULL AS is_loaded
  FROM claimd.maps
 WHERE name = $1
