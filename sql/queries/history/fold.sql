-- SPDX-License-Identifier: Apache-2.0
-- Combines the counts of completed jobs that are not kept into hours, and deletes those that are older than $1 days.
-- params: int4
SELECT claimd.fold_counts($1)
