-- SPDX-License-Identifier: Apache-2.0
-- The arguments of one run that were too large to come with its claim. No row: the run is stale.
-- params: int8, int8
SELECT args::text FROM claimd.job WHERE id = $1 AND fence = $2 AND state = 'running'
