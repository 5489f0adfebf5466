-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION wait(bigint, interval), job_status(bigint);
