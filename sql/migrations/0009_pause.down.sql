-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION pause_queue(text), resume_queue(text), pause_kind(text), resume_kind(text), ask_worker(uuid, text), delete_job(bigint);
ALTER TABLE kind DROP COLUMN paused;
ALTER TABLE worker DROP CONSTRAINT worker_asked, DROP COLUMN asked;
