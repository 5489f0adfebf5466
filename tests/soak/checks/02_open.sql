-- SPDX-License-Identifier: Apache-2.0
-- inv.L1: every job ends in the right state: completed, unless its handler returns otherwise or it is cancelled.
SELECT id AS job, format('%s (%s) is %s', part, kind, state) AS seen FROM soak.job
 WHERE state NOT IN ('completed', 'discarded', 'cancelled') OR state <> ends
 LIMIT 20;
-- wrong: UPDATE soak.job SET state = 'running' WHERE n = 500
