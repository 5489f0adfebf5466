-- SPDX-License-Identifier: Apache-2.0
-- The limits of a queue; NULL: none.
-- params: text
SELECT name, max_running, rate, max_open FROM claimd.queue WHERE name = $1
