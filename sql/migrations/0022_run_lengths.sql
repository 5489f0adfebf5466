-- SPDX-License-Identifier: Apache-2.0
-- How long runs take, for `claimctl kinds` and `claimctl queues show`.

-- The runs of a worker in the last hour or two; it saves them every few seconds. buckets[i] counts runs that took less than 2 ^ (i/4)
-- µs, but too long for the bucket before it.
CREATE TABLE run_length (
    worker_id uuid NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL,
    runs bigint NOT NULL,
    run_us bigint NOT NULL, -- of all these runs
    buckets integer[] NOT NULL,
    saved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT run_length_pkey PRIMARY KEY (worker_id, queue, kind),
    CONSTRAINT run_length_worker FOREIGN KEY (worker_id) REFERENCES worker ON DELETE CASCADE,
    CONSTRAINT run_length_runs CHECK (runs > 0)
);

-- The run lengths of all workers together: for each kind (queue is NULL), for each queue (kind is NULL), and for each pair of both.
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

GRANT SELECT ON run_length, run_lengths TO claimd_admin, claimd_reader;
GRANT SELECT, INSERT, UPDATE ON run_length TO claimd_worker;

-- ---- down ----
DROP VIEW run_lengths;
DROP TABLE run_length;
