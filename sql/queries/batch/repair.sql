-- SPDX-License-Identifier: Apache-2.0
-- Records the end of jobs that were deleted from the table, in their closed batches and for the jobs that wait for them; returns how
-- many there were. Indexes: batch_open, batch_job_open, job_after_open, job_pkey.
SELECT claimd.repair_batches() + claimd.repair_waits()
