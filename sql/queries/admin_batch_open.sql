-- SPDX-License-Identifier: Apache-2.0
-- Opens a batch of this name, with this follow-up; its id.
-- params: text, text
SELECT claimd.batch_open(COALESCE($1, ''), $2::jsonb) AS id
