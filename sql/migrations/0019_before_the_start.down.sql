-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION expire_jobs, expire, set_deadlines, after_many, waiting_marks, why_not_after_any, why_not_after_jobs, predecessors_text,
    predecessors, keep_predecessors;
DROP TABLE job_deadline, job_waited;
