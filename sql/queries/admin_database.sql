-- SPDX-License-Identifier: Apache-2.0
-- Whether there is a database of this name: 1 or 0.
-- params: text
SELECT count(*) FROM pg_catalog.pg_database WHERE datname = $1
