-- SPDX-License-Identifier: Apache-2.0
-- Closes a batch and cancels what has not ended; how many jobs. Raises CL003 where there is none.
-- params: int8
SELECT claimd.batch_cancel($1) AS jobs
