-- SPDX-License-Identifier: Apache-2.0
-- How long finished jobs of a queue are kept.
-- params: name text queue
-- shows: state text, days number
-- tables: rules
SELECT CASE state WHEN '' THEN 'all others' ELSE state END AS state, days FROM claimd.retention WHERE scope = 'queue' AND name = $1
 ORDER BY retention.state
