-- SPDX-License-Identifier: Apache-2.0
-- Stores a look at the clock ($2, µs since 1970) and what is left of the hold ($3), unless another look or trust_clock() came
-- between: then sweep_at is no longer $1.
-- params: int8, int8, int8
UPDATE claimd.cluster SET sweep_at = timestamptz 'epoch' + $2 * interval '1 microsecond', sweep_hold_us = $3
 WHERE sweep_at = timestamptz 'epoch' + $1 * interval '1 microsecond'
RETURNING 1
