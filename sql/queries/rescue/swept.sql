-- SPDX-License-Identifier: Apache-2.0
-- Nothing of these dead workers runs any more: nobody needs to look at them again.
-- params: text[]
UPDATE claimd.worker SET stopped = true WHERE worker_id = ANY ($1::uuid[]) AND dead
