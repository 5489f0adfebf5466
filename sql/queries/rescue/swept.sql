-- SPDX-License-Identifier: Apache-2.0
-- Marks these dead workers stopped, because nothing runs under them any more: they need not be examined again.
-- params: text[]
UPDATE claimd.worker SET stopped = true WHERE worker_id = ANY ($1::uuid[]) AND dead
