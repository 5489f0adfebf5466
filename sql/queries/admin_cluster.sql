-- SPDX-License-Identifier: Apache-2.0
-- The cluster as a whole: its schema, lock nodes and sizes, its schedulers and live workers.
-- shows: schema_version number, owners bool, lock_nodes text, job_table_bytes number, history_bytes number, postgres text
-- tables: record cluster, schedulers = schedulers_list, workers = cluster_workers
SELECT c.schema_version, c.owners, c.lock_nodes, pg_total_relation_size('claimd.job') AS job_table_bytes,
       (SELECT COALESCE(sum(pg_total_relation_size(inhrelid)), 0) FROM pg_catalog.pg_inherits
         WHERE inhparent = 'claimd.job_history'::regclass) AS history_bytes,
       current_setting('server_version') AS postgres
  FROM claimd.cluster c
