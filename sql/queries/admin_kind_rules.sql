-- SPDX-License-Identifier: Apache-2.0
-- How long finished jobs of a kind are kept.
-- params: name text kind
-- shows: state text, days number
-- tables: rules
SELECT CASE state WHEN '' THEN 'all others' ELSE state END AS state, days FROM claimd.retention WHERE scope = 'kind' AND name = $1
 ORDER BY retention.state
