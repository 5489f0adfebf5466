-- SPDX-License-Identifier: Apache-2.0
-- Applies a patch to the settings of a queue.
-- params: text, text
SELECT claimd.set_queue($1, $2::jsonb)
