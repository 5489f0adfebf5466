-- SPDX-License-Identifier: Apache-2.0
-- Counts of completed jobs that are not kept: by the hour, and no older than $1 days.
-- params: int4
SELECT claimd.fold_counts($1)
