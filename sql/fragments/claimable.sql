-- SPDX-License-Identifier: Apache-2.0
-- The condition of a claim: available, due, of a served kind, and with an attempt left. $3 and $4 go together: kinds, and how many
-- attempts each allows by default; $5 = 1 leaves out jobs at their last attempt. Jobs with a limit, a kept edit or a deadline are
-- left to job/claim_limited.sql.
state = 'available' AND scheduled_at <= clock_timestamp()
   AND flags & {flags_of_limited} = 0 AND queue <> ALL (ARRAY(SELECT name FROM claimd.queue WHERE limited))
   AND kind = ANY ($3) AND kind <> ALL (ARRAY(SELECT name FROM claimd.kind WHERE limited)) AND attempt + $5 < COALESCE(max_attempts, $4[array_position($3, kind)])
