-- SPDX-License-Identifier: Apache-2.0
-- The table of the handler `cmdb_merge` (cmdb_merge.c), and what its login needs: in the database of claimd's jobs.
CREATE SCHEMA cmdb;
CREATE TABLE cmdb.machine (
    name text PRIMARY KEY,
    facts jsonb NOT NULL DEFAULT '{}'
);
CREATE ROLE cmdb LOGIN;
GRANT USAGE ON SCHEMA cmdb, claimd TO cmdb;
GRANT SELECT, INSERT, UPDATE ON cmdb.machine TO cmdb;
GRANT EXECUTE ON FUNCTION claimd.complete_in_tx TO cmdb;
