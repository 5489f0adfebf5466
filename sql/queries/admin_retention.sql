-- SPDX-License-Identifier: Apache-2.0
-- The rules of a queue or kind ($1: which of both, $2: its name).
-- params: text, text
SELECT CASE state WHEN '' THEN 'all others' ELSE state END AS state, days FROM claimd.retention WHERE scope = $1 AND name = $2
 ORDER BY retention.state
