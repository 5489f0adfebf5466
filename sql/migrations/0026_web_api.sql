-- SPDX-License-Identifier: Apache-2.0
-- For claimd-web: requests with an Idempotency-Key, the median of runs, and the end of the log of a running job. The functions that it
-- may call are in sql/functions/web.sql.

-- One row per key of a caller, written in the transaction that does what the request asks for. `request`: SHA-256 of its method, path
-- and body; `answer`: the answer to a repetition.
CREATE TABLE web_key (
    who text NOT NULL,
    key text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    request bytea NOT NULL,
    answer text,
    CONSTRAINT web_key_pkey PRIMARY KEY (who, key)
);
CREATE INDEX web_key_at ON web_key (at);

-- As in 0022, with p50_s.
CREATE OR REPLACE VIEW run_lengths AS
WITH recent AS (
    SELECT queue, kind, since, runs, run_us, buckets FROM run_length WHERE saved_at > statement_timestamp() - interval '2 hours'
), total AS (
    SELECT queue, kind, sum(runs)::bigint AS runs, sum(run_us) / sum(runs) AS mean_us, min(since) AS since
      FROM recent GROUP BY GROUPING SETS ((queue), (kind), (queue, kind))
), bucket AS (
    SELECT r.queue, r.kind, b.n, sum(b.runs) AS runs
      FROM recent r CROSS JOIN unnest(r.buckets) WITH ORDINALITY AS b(runs, n)
     WHERE b.runs > 0
     GROUP BY GROUPING SETS ((r.queue, b.n), (r.kind, b.n), (r.queue, r.kind, b.n))
), risen AS (
    SELECT queue, kind, n, runs, sum(runs) OVER (PARTITION BY queue, kind ORDER BY n) AS upto FROM bucket
)
SELECT t.queue, t.kind, t.runs, round(t.mean_us / 1000000, 6) AS mean_s,
       (SELECT round((2 ^ ((r.n - 1 + (0.95 * t.runs - (r.upto - r.runs)) / r.runs) / 4) / 1000000)::numeric, 6)
          FROM risen r
         WHERE (r.queue, r.kind) IS NOT DISTINCT FROM (t.queue, t.kind) AND r.upto >= 0.95 * t.runs
         ORDER BY r.n LIMIT 1) AS p95_s,
       t.since,
       (SELECT round((2 ^ ((r.n - 1 + (0.50 * t.runs - (r.upto - r.runs)) / r.runs) / 4) / 1000000)::numeric, 6)
          FROM risen r
         WHERE (r.queue, r.kind) IS NOT DISTINCT FROM (t.queue, t.kind) AND r.upto >= 0.50 * t.runs
         ORDER BY r.n LIMIT 1) AS p50_s
  FROM total t;

-- Of the run with this fence, as far as its worker has saved it.
ALTER TABLE job_live ADD COLUMN log text, ADD CONSTRAINT job_live_log_size CHECK (octet_length(log) <= 4096);

-- ---- down ----
ALTER TABLE job_live DROP COLUMN log;
DROP VIEW run_lengths;
CREATE VIEW run_lengths AS
WITH recent AS (
    SELECT queue, kind, since, runs, run_us, buckets FROM run_length WHERE saved_at > statement_timestamp() - interval '2 hours'
), total AS (
    SELECT queue, kind, sum(runs)::bigint AS runs, sum(run_us) / sum(runs) AS mean_us, min(since) AS since
      FROM recent GROUP BY GROUPING SETS ((queue), (kind), (queue, kind))
), bucket AS (
    SELECT r.queue, r.kind, b.n, sum(b.runs) AS runs
      FROM recent r CROSS JOIN unnest(r.buckets) WITH ORDINALITY AS b(runs, n)
     WHERE b.runs > 0
     GROUP BY GROUPING SETS ((r.queue, b.n), (r.kind, b.n), (r.queue, r.kind, b.n))
), risen AS (
    SELECT queue, kind, n, runs, sum(runs) OVER (PARTITION BY queue, kind ORDER BY n) AS upto FROM bucket
)
SELECT t.queue, t.kind, t.runs, round(t.mean_us / 1000000, 6) AS mean_s,
       (SELECT round((2 ^ ((r.n - 1 + (0.95 * t.runs - (r.upto - r.runs)) / r.runs) / 4) / 1000000)::numeric, 6)
          FROM risen r
         WHERE (r.queue, r.kind) IS NOT DISTINCT FROM (t.queue, t.kind) AND r.upto >= 0.95 * t.runs
         ORDER BY r.n LIMIT 1) AS p95_s,
       t.since
  FROM total t;
GRANT SELECT ON run_lengths TO claimd_admin, claimd_reader;
DROP TABLE web_key;
