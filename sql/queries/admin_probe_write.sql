-- SPDX-License-Identifier: Apache-2.0
-- Fails if PostgreSQL can't write: it has no space, is read-only, or a commit waits for a standby. Leaves nothing behind.
SELECT claimd.probe_write()
