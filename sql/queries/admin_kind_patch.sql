-- SPDX-License-Identifier: Apache-2.0
-- Applies a patch to the settings of a kind.
-- params: text, text
SELECT claimd.set_kind($1, $2::jsonb)
