-- SPDX-License-Identifier: Apache-2.0
-- C3: the next attempt gets the checkpoint of the last one, unless PostgreSQL was away when the last one ended.
SELECT s.job, format('fence %s was given checkpoint %s, the last one was %s', s.fence, s.text, b.attempt) AS seen
  FROM soak.start s
  JOIN soak.job j ON j.id = s.job AND j.part = 'stepped'
 CROSS JOIN LATERAL (SELECT max(l.attempt) AS attempt FROM soak.ledger l JOIN soak.run r ON r.fence = l.fence AND r.outcome = 'failed'
                      WHERE l.job = s.job AND l.event = 'x' AND l.fence < s.fence
                        AND NOT EXISTS (SELECT FROM soak.fault f WHERE f.target = 'postgres' AND r.ended > f.at - interval '1 s'
                                           AND r.began < f.until + interval '10 s')) AS b
 WHERE s.text::integer < b.attempt
 LIMIT 20;
-- wrong: UPDATE soak.start SET text = '0' WHERE job IN (SELECT id FROM soak.job WHERE part = 'stepped')
