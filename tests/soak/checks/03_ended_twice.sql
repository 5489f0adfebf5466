-- SPDX-License-Identifier: Apache-2.0
-- inv.S2: no job ends twice.
SELECT id AS job, format('ended %s times: %s', count(*), string_agg(state || ' with fence ' || fence, ', ')) AS seen
  FROM claimd.job_history GROUP BY id HAVING count(*) > 1
 LIMIT 20;
-- wrong: INSERT INTO claimd.job_history SELECT * FROM claimd.job_history LIMIT 1
