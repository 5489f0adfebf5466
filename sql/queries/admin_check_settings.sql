-- SPDX-License-Identifier: Apache-2.0
-- Sets the settings of sql/check.sql for the session. NULL: their defaults.
-- params: text, text
SELECT set_config('claimd.check_after', COALESCE($1, ''), false), set_config('claimd.check_since', COALESCE($2, ''), false)
