-- SPDX-License-Identifier: Apache-2.0
-- The evidence for the checks, gathered after the run. In $FOLDER are the handlers' own record and the journal of faults, whose times count
-- from $BOOT_US.
DROP TABLE IF EXISTS soak.line, soak.fault, soak.ledger, soak.start, soak.job, soak.run, soak.extra;

CREATE UNLOGGED TABLE soak.ledger (
    t_us bigint NOT NULL, job bigint NOT NULL, fence bigint NOT NULL, attempt integer NOT NULL,
    event "char" NOT NULL, -- s = starts, t = still at it, d = done, x = ends otherwise
    n bigint NOT NULL, v integer NOT NULL, worker integer NOT NULL, runner integer NOT NULL, text text
);
COPY soak.ledger FROM '$FOLDER/ledger/ledger.csv' (FORMAT csv);

-- The faults: a daemon's pid is that of its last start, and PostgreSQL's fault lasts until it can be reached. A killed runner is known by
-- its pid and that of its worker, because in a million jobs pids are used again.
CREATE UNLOGGED TABLE soak.line (text jsonb NOT NULL);
COPY soak.line FROM '$FOLDER/nemesis.jsonl' (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02');
CREATE UNLOGGED TABLE soak.fault AS
WITH line AS (
    SELECT l.*, split_part(l.target, '/', 1) AS host, to_timestamp(($BOOT_US + COALESCE(l.struck, l.t) / 1000) / 1e6) AS at,
           to_timestamp(($BOOT_US + l.t / 1000) / 1e6) AS told
      FROM soak.line CROSS JOIN LATERAL jsonb_to_record(text) AS l (ph text, x text, target text, detail text, pid integer, struck bigint, t bigint))
SELECT f.at, (SELECT min(o.told) FROM line o WHERE o.ph = 'ok' AND o.x = replace(f.x, 'pg_restart', 'pg_gone') AND o.told >= f.told) AS until,
       CASE WHEN f.detail LIKE '%new state directory' THEN 'kill for good' WHEN f.x = 'kill9_runner' THEN 'kill a runner'
            WHEN f.x LIKE 'stop%' THEN 'stop' WHEN f.x = 'redis_empty' THEN 'wipe' ELSE 'kill' END AS what,
       CASE f.x WHEN 'pg_restart' THEN 'postgres' WHEN 'redis_empty' THEN 'redis' ELSE f.host END AS target,
       CASE WHEN f.x IN ('kill9', 'stop_worker', 'stop_scheduler') THEN d.pid END AS pid,
       CASE f.x WHEN 'kill9_runner' THEN d.pid END AS worker,
       CASE f.x WHEN 'kill9_runner' THEN split_part(f.target, '/', 2)::integer END AS runner
  FROM line f
  LEFT JOIN LATERAL (SELECT s.pid FROM line s
                      WHERE s.x = 'started' AND s.target = f.host AND s.at < f.at ORDER BY s.at DESC LIMIT 1) AS d ON true
 WHERE f.ph = 'inv' AND f.x <> 'pg_gone';

-- One row per start, with when its handler was done and when it last wrote a line.
CREATE UNLOGGED TABLE soak.start AS
SELECT job, fence, min(t_us) FILTER (WHERE event = 's') AS t_us, count(*) FILTER (WHERE event = 's') AS starts,
       min(t_us) FILTER (WHERE event = 'd') AS done_us, bool_or(event = 'x') AS is_fallen, max(t_us) AS last_us,
       max(v) AS v, max(worker) AS worker, max(text) FILTER (WHERE event = 's') AS text, max(n) AS n, max(runner) AS runner
  FROM soak.ledger GROUP BY job, fence;
CREATE INDEX ON soak.ledger (job);
CREATE INDEX ON soak.start (fence);
CREATE INDEX ON soak.start (job, fence);

-- All jobs.
CREATE UNLOGGED TABLE soak.job AS
SELECT j.id, j.state, j.kind, j.queue, j.priority, j.fence, j.attempt, j.crashes, j.generation, j.version, j.unique_key, j.exclusive_key, j.created_at, j.attempted_at,
       j.finalized_at, (j.result ->> 'fence')::bigint AS result_fence, (j.result ->> 'taken')::integer AS taken, m.n, p.name AS part, p.ends,
       COALESCE(j.max_attempts, k.max_attempts, 25) AS max_attempts
  FROM claimd.jobs j
  LEFT JOIN claimd.kind k ON k.name = j.kind
 CROSS JOIN LATERAL (SELECT COALESCE(j.args ->> 'n', j.metadata ->> 'n')::bigint AS n) AS m
  LEFT JOIN soak.part p ON m.n >= 0 AND m.n % 1000 BETWEEN p.low AND p.high;
CREATE INDEX ON soak.job (id);
CREATE INDEX ON soak.job (n);

-- All runs that claimd has recorded, with the times of PostgreSQL's clock, by which claimd decided. Runs that were handed back are not
-- recorded.
CREATE UNLOGGED TABLE soak.run AS
SELECT j.id AS job, h.fence, h.worker_id, h.attempted_at AS began, h.finalized_at AS ended, 'completed' AS outcome
  FROM soak.job j JOIN claimd.job_history h ON h.id = j.id AND h.state = 'completed'
UNION ALL
SELECT job_id, fence, worker_id, started_at, ended_at, outcome FROM claimd.job_attempt;
CREATE INDEX ON soak.run (fence);
CREATE INDEX ON soak.run (job);
ANALYZE soak.ledger;
ANALYZE soak.start;
ANALYZE soak.job;
ANALYZE soak.run;
