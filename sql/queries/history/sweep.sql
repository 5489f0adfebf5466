-- SPDX-License-Identifier: Apache-2.0
-- Deletes jobs that are older than their rule from $5 pages of a day, from page $4 on. next_page -1: that was the last page.
-- params: text, int4, int4, int8, int4
SELECT COALESCE(next_page, -1) AS next_page, deleted, left_over FROM claimd.sweep_day($1::date, $2, $3, $4, $5)
