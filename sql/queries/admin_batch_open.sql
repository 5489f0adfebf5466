-- SPDX-License-Identifier: Apache-2.0
-- Opens a batch of this name, with the jobs that follow it; returns its id.
-- params: name text, follow_up text, on_success text, on_failure text
-- shows: id number
-- tables: record batch
-- says: {id}
-- method: POST
SELECT claimd.batch_open(COALESCE($1, ''), $2::jsonb, on_success => $3::jsonb, on_failure => $4::jsonb) AS id
