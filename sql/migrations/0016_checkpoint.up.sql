-- SPDX-License-Identifier: Apache-2.0
-- For claims, which ask for nothing else of job_live: empty while no handler keeps a checkpoint.
CREATE INDEX job_live_checkpoint ON job_live (id) WHERE checkpoint IS NOT NULL;
