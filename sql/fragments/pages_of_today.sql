-- SPDX-License-Identifier: Apache-2.0
-- How many pages today's history has.
COALESCE(pg_relation_size(to_regclass('claimd.job_history_'
               || to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD'))), 0) / 8192
