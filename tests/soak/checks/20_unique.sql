-- SPDX-License-Identifier: Apache-2.0
-- B7: at most one job with a unique key is open at a time.
SELECT b.id AS job, format('made at %s, but job %s with %s was open until %s', b.created_at, a.id, a.unique_key, a.finalized_at) AS seen
  FROM soak.job a JOIN soak.job b ON b.unique_key = a.unique_key AND b.id > a.id AND b.created_at < a.finalized_at
 WHERE a.unique_key IS NOT NULL
 LIMIT 20;
-- wrong: UPDATE soak.job SET finalized_at = 'infinity' WHERE unique_key IS NOT NULL
