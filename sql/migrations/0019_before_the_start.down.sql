-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION expire_jobs, expire, predecessors_text, predecessors, keep_predecessors;
DROP TABLE job_deadline, job_waited;
