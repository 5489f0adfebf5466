-- SPDX-License-Identifier: Apache-2.0
-- What a patch says of a kind.
-- params: text, text
SELECT claimd.set_kind($1, $2::jsonb)
