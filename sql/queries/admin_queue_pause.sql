-- SPDX-License-Identifier: Apache-2.0
-- Pauses ($2) a queue or resumes it. True: that changed something.
-- params: text, bool
SELECT CASE WHEN $2 THEN claimd.pause_queue($1) ELSE claimd.resume_queue($1) END AS changed
