-- SPDX-License-Identifier: Apache-2.0
-- inv.S4, G4: the writes of a handler in the transaction that completes its job take effect once, whatever was killed: the stock is what was
-- added minus what the jobs took, and each job whose result says that it took something did.
SELECT j.id AS job, format('%s, says that it took %s, and has taken %s', j.state, j.taken, COALESCE(d.quantity, 0)) AS seen
  FROM soak.job j LEFT JOIN inventory.deduction d ON d.job_id = j.id
 WHERE j.part = 'effect' AND j.taken IS DISTINCT FROM COALESCE(d.quantity, 0)
UNION ALL
SELECT NULL, format('%s were put in, %s were taken, %s are left', s.quantity, (SELECT count(*) FROM inventory.deduction), i.quantity)
  FROM soak.stock s, inventory.stock i
 WHERE s.quantity - (SELECT count(*) FROM inventory.deduction) <> i.quantity
 LIMIT 20;
-- wrong: UPDATE inventory.stock SET quantity = quantity + 1
