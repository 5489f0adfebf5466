-- SPDX-License-Identifier: Apache-2.0
-- Midnight (UTC), when the partition of the history began that receives the jobs that end now.
date_trunc('day', statement_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
