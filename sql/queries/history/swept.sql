-- SPDX-License-Identifier: Apache-2.0
-- Records that a day was swept to its end.
-- params: text, int4, text, bool
SELECT claimd.day_swept($1::date, $2, $3, $4)
