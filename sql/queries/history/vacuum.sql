-- SPDX-License-Identifier: Apache-2.0
-- Never truncates: that takes a lock which stops everybody. Steps back when somebody else vacuums already.
VACUUM (TRUNCATE false, SKIP_LOCKED true) claimd.job
