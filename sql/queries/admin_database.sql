-- SPDX-License-Identifier: Apache-2.0
-- Is there a database of this name?
-- params: text
SELECT count(*) FROM pg_catalog.pg_database WHERE datname = $1
