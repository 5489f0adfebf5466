-- SPDX-License-Identifier: Apache-2.0
-- The backend that serves this statement: behind a pooler it isn't the one of the connection's start.
SELECT pg_catalog.pg_backend_pid()
