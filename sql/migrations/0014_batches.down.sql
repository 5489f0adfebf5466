-- SPDX-License-Identifier: Apache-2.0
DROP TRIGGER batch_job_ended ON job;
DROP TRIGGER batch_job_again ON job;
DROP FUNCTION batch_status(bigint), batch_open(text, jsonb), batch_add(bigint, bigint), batch_close(bigint), batch_cancel(bigint),
    refuse_batch(bigint), batch_job_ended(), batch_job_again(), end_batches(integer);
DROP VIEW batches;
DROP TABLE batch_job, batch;
