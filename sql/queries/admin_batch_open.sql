-- SPDX-License-Identifier: Apache-2.0
-- Opens a batch of this name, with these jobs that follow it; its id.
-- params: text, text, text, text
SELECT claimd.batch_open(COALESCE($1, ''), $2::jsonb, on_success => $3::jsonb, on_failure => $4::jsonb) AS id
