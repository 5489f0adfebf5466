-- SPDX-License-Identifier: Apache-2.0
-- Before a session's first claim: past the fences that a lost primary gave out. Locks the row of the cluster only after a
-- failover. Refused (55000) by a server in recovery.
SELECT claimd.guard_fence() AS jumped
