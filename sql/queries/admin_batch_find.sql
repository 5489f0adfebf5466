-- SPDX-License-Identifier: Apache-2.0
-- A row if there is this batch, without a count of its jobs. Index: batch_pkey.
-- params: int8
SELECT id FROM claimd.batch WHERE id = $1
