-- SPDX-License-Identifier: Apache-2.0
-- The limits of a queue; NULL: none.
-- params: text
SELECT name, max_running, rate FROM claimd.queue WHERE name = $1
