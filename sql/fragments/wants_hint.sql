-- SPDX-License-Identifier: Apache-2.0
-- Whether the row `f` of the range `r` gets a hint: it is available, and does not wait for its only key, whose end of a run pushes the
-- next hint. A deep read relies on that only while the key has no free place. Jobs with two keys reserve places when they are tried,
-- so they always get a hint. LIMIT prevents a plan that reads all of key_waiting.
f.state = 'available'
           AND (f.exclusive_key IS NULL OR f.second_key IS NOT NULL
                OR (SELECT true FROM claimd.key_waiting w
                     WHERE w.key = f.exclusive_key AND w.other_key = '' AND w.priority = f.priority AND w.ready_at = f.ready_at
                       AND w.job_id = f.id LIMIT 1) IS NULL
                OR (r.deep <> 0 AND claimd.key_places(f.exclusive_key) > 0))
