-- SPDX-License-Identifier: Apache-2.0
-- The next day from which something is to be deleted, if jobs without a rule are kept for $1 days. No row if there is none.
-- params: int4
SELECT to_char(day, 'YYYY-MM-DD') AS day, age, rules FROM claimd.day_to_sweep($1) WHERE day IS NOT NULL
