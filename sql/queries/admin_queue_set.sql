-- SPDX-License-Identifier: Apache-2.0
-- What a patch says of a queue.
-- params: text, text
SELECT claimd.set_queue($1, $2::jsonb)
