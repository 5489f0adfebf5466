-- SPDX-License-Identifier: Apache-2.0
-- A row if the batch exists; does not count its jobs. Index: batch_pkey.
-- params: int8
SELECT id FROM claimd.batch WHERE id = $1
