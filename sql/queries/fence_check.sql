-- SPDX-License-Identifier: Apache-2.0
-- Moves the fence past all fences that a lost primary may have issued; sent before a session's first claim. Locks the row of the
-- cluster only after a failover. Refused (55000) by a server in recovery.
SELECT claimd.guard_fence() AS jumped
