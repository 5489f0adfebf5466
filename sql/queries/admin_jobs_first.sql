-- SPDX-License-Identifier: Apache-2.0
-- The lowest id from $1 up of the open jobs, or 0 if there are none. Index: job_pkey.
-- params: low int8
SELECT COALESCE(min(id), 0) FROM claimd.job WHERE id >= $1
