-- SPDX-License-Identifier: Apache-2.0
-- Vacuums `job`. Never truncates, because that takes a lock that stops all others. Skips the table if another session is vacuuming it.
VACUUM (TRUNCATE false, SKIP_LOCKED true) claimd.job
