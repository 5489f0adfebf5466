-- SPDX-License-Identifier: Apache-2.0
-- For the session: the settings of sql/check.sql. NULL = as it stands there.
-- params: text, text
SELECT set_config('claimd.check_after', COALESCE($1, ''), false), set_config('claimd.check_since', COALESCE($2, ''), false)
