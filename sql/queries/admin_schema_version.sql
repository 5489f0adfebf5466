-- SPDX-License-Identifier: Apache-2.0
-- Version of the schema; fails with 42P01 or 3F000 in a database without one.
SELECT schema_version FROM claimd.cluster
