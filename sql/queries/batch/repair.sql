-- SPDX-License-Identifier: Apache-2.0
-- Jobs that somebody has deleted count as cancelled, for their closed batch and for those who wait for them; how many that were.
-- Index: batch_open, batch_job_open, job_after_open, job_pkey.
SELECT claimd.repair_batches() + claimd.repair_waits()
