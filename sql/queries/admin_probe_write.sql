-- SPDX-License-Identifier: Apache-2.0
-- Fails where PostgreSQL can't write: no space, read only, a commit that waits for a standby. Leaves nothing behind.
SELECT claimd.probe_write()
