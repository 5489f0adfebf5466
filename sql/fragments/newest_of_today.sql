-- SPDX-License-Identifier: Apache-2.0
-- The condition for rows `h` of the history to be in the newest pages of today's, from tail.page on: a part `tail` of the statement has
-- that page.
h.finalized_at >= {start_of_today} AND h.ctid >= (SELECT format('(%s,0)', page)::tid FROM tail)
