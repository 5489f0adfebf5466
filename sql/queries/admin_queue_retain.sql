-- SPDX-License-Identifier: Apache-2.0
-- How long finished jobs of a queue are kept: $2 NULL = the default; $3: those that ended so, NULL = all.
-- params: text, text, text
SELECT claimd.retain_queue($1, $2::interval, $3)
