-- SPDX-License-Identifier: Apache-2.0
-- The pid of the backend that serves this statement: behind a pooler, it is not the one that the connection reported at its start.
SELECT pg_catalog.pg_backend_pid()
