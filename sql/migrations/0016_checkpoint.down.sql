-- SPDX-License-Identifier: Apache-2.0
DROP INDEX job_live_checkpoint;
