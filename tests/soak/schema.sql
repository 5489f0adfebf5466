-- SPDX-License-Identifier: Apache-2.0
-- The jobs that the soak inserts, what it does to them meanwhile, and its records of both: docs/reliability.md.
CREATE SCHEMA soak;

-- The mix: a part has the jobs with n % 1000 from `low` to `high`. `ends`: the state in which they must end, NULL if that varies.
CREATE TABLE soak.part (
    name text PRIMARY KEY,
    low integer NOT NULL,
    high integer NOT NULL,
    how text NOT NULL, -- which statement of soak.put() inserts them
    kind text NOT NULL DEFAULT 's_plain',
    queue text NOT NULL DEFAULT 'default',
    does text NOT NULL DEFAULT 'done',
    until integer NOT NULL DEFAULT 0,
    ms integer[] NOT NULL DEFAULT '{0,0}', -- from, to
    delay_ms integer NOT NULL DEFAULT 0, -- at most
    ends text DEFAULT 'completed'
);
INSERT INTO soak.part (name, low, high, how, kind, queue, does, until, ms, delay_ms, ends) VALUES
    ('limited',   0,   9, 'insert', 's_plain', 'soak_five',   'done',   0, '{5,5}',       0,     'completed'),
    ('rated',    10,  14, 'insert', 's_plain', 'soak_rate',   'done',   0, '{0,0}',       0,     'completed'),
    ('keyed',    15,  24, 'keys',   's_plain', 'default',     'done',   0, '{1,1}',       0,     'completed'),
    ('unique',   25,  29, 'unique', 's_plain', 'default',     'done',   0, '{0,0}',       0,     'completed'),
    ('retried',  30,  79, 'insert', 's_flaky', 'default',     'retry',  2, '{0,0}',       0,     'completed'),
    ('snoozed',  80,  84, 'insert', 's_flaky', 'default',     'snooze', 0, '{0,0}',       0,     'completed'),
    ('crashed',  85,  85, 'insert', 's_flaky', 'default',     'crash',  2, '{0,0}',       0,     'completed'),
    ('failed',   86,  86, 'insert', 's_flaky', 'default',     'fail',   0, '{0,0}',       0,     'discarded'),
    ('stepped',  87,  87, 'insert', 's_flaky', 'default',     'steps',  4, '{0,0}',       0,     'completed'),
    ('long',     88,  89, 'insert', 's_long',  'soak_long',   'done',   0, '{1000,12000}', 0,    'completed'),
    ('edited',   90,  94, 'insert', 's_plain', 'soak_edit',   'done',   0, '{0,0}',       10000, 'completed'),
    ('stopped',  95,  95, 'insert', 's_long',  'soak_cancel', 'done',   0, '{2000,2000}', 0,     NULL),
    ('unwanted', 96,  99, 'insert', 's_plain', 'soak_cancel', 'done',   0, '{0,0}',       10000, NULL),
    ('batched', 100, 149, 'batch',  's_plain', 'default',     'done',   0, '{0,0}',       0,     'completed'),
    ('chained', 150, 159, 'chain',  's_plain', 'default',     'done',   0, '{0,0}',       0,     'completed'),
    ('once',    160, 164, 'insert', 's_once',  'default',     'done',   0, '{0,20}',      0,     NULL),
    ('effect',  165, 169, 'effect', 'inventory_deduct', 'default', 'done', 0, '{0,0}',    0,     'completed'),
    ('rare',    170, 209, 'insert', 's_rare',  'default',     'done',   0, '{0,0}',       0,     'completed'),
    ('plain',   210, 988, 'insert', 's_plain', 'default',     'done',   0, '{0,20}',      0,     'completed'),
    ('amended', 989, 989, 'insert', 's_flaky', 'soak_amend',  'retry',  3, '{200,400}',   0,     'completed'),
    ('unkept',  990, 999, 'insert', 's_gone',  'default',     'done',   0, '{0,20}',      0,     'gone');

INSERT INTO claimd.kind (name) VALUES ('s_gone'); -- workers set its other columns later
SELECT claimd.limit_queue('soak_five', 5), claimd.limit_queue('soak_long', 24), claimd.limit_rate('soak_rate', 100),
       claimd.limit_key('key0', 3), claimd.limit_open('soak_open', 10), claimd.retain_kind('s_gone', '0 days', 'completed');

-- Records of what was inserted and done.
CREATE TABLE soak.round (first bigint PRIMARY KEY, jobs bigint NOT NULL);
CREATE TABLE soak.refused (n bigint PRIMARY KEY, holder bigint NOT NULL); -- another job held its unique key
CREATE TABLE soak.batch (batch_id bigint PRIMARY KEY, n bigint NOT NULL);
CREATE TABLE soak.after (n bigint PRIMARY KEY, job_id bigint NOT NULL, after_id bigint NOT NULL);
CREATE TABLE soak.stock AS SELECT 0 AS quantity; -- sum of what was added to inventory.stock
INSERT INTO inventory.stock VALUES ('cup', 0);
CREATE TABLE soak.act (at timestamptz NOT NULL DEFAULT clock_timestamp(), op text NOT NULL, job_id bigint NOT NULL, answer text NOT NULL);
CREATE TABLE soak.amend (job_id bigint NOT NULL, fence bigint NOT NULL, v integer NOT NULL); -- runs under later fences have this version
CREATE TABLE soak.offer (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, who integer NOT NULL, job_id bigint, refused integer NOT NULL DEFAULT 0);
CREATE TABLE soak.crowd (at timestamptz NOT NULL DEFAULT clock_timestamp(), open bigint NOT NULL); -- jobs of soak_open that were open then
CREATE TABLE soak.ticked (schedule text PRIMARY KEY, step interval NOT NULL, first_at timestamptz NOT NULL, last_at timestamptz,
                          paused_at timestamptz); -- ticks are due every `step` from first_at until before last_at

CREATE FUNCTION soak.spread(n bigint, most integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT ((hashint8(n)::bigint & 2147483647) % (most + 1))::integer
$$;

-- Returns the kind of a job, or that of a program which does the same (programs.sql).
CREATE FUNCTION soak.by(kind text, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT kind $$;

CREATE FUNCTION soak.args(n bigint, p soak.part) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object('n', n, 'v', 1, 'do', p.does, 'until', p.until, 'ms', p.ms[1] + soak.spread(n, p.ms[2] - p.ms[1]))
$$;

-- Returns a job in the form that enqueue_many() takes.
CREATE FUNCTION soak.request(n bigint, p soak.part) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object('kind', soak.by(p.kind, n), 'queue', p.queue, 'args', soak.args(n, p))
$$;

CREATE FUNCTION soak.put_batch(base bigint, p soak.part) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    batch bigint := claimd.batch_open('soak', jsonb_build_object('kind', 's_plain', 'args', jsonb_build_object('n', -base - 1000)));
BEGIN
    INSERT INTO soak.batch VALUES (batch, base);
    PERFORM claimd.batch_add(batch, claimd.enqueue(soak.by(p.kind, n), soak.args(n, p), share_key => 'tenant' || n % 5)) FROM generate_series(base + p.low, base + p.high) AS n;
    PERFORM claimd.batch_close(batch);
END $$;

CREATE FUNCTION soak.put_chain(base bigint, p soak.part) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    now bigint;
BEGIN
    FOR n IN base + p.low .. base + p.high LOOP
        now := claimd.enqueue(soak.by(p.kind, n), soak.args(n, p));
        IF before IS NOT NULL THEN
            PERFORM claimd.after(now, ARRAY[before], 'run');
            INSERT INTO soak.after VALUES (n, now, before);
        END IF;
        before := now;
    END LOOP;
END $$;

CREATE FUNCTION soak.put_unique(base bigint, p soak.part) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    made record;
BEGIN
    FOR n IN base + p.low .. base + p.high LOOP
        SELECT * INTO made FROM claimd.enqueue_unique(soak.by(p.kind, n), soak.args(n, p), unique_key => 'unique' || n % 7);
        IF NOT made.inserted THEN
            INSERT INTO soak.refused VALUES (n, made.id);
        END IF;
    END LOOP;
END $$;

-- Inserts the jobs first to first + jobs − 1, whole thousands, in one transaction, together with the row of the round.
CREATE FUNCTION soak.put(first bigint, jobs bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    p soak.part;
BEGIN
    INSERT INTO soak.round VALUES (first, jobs);
    INSERT INTO claimd.job (kind, queue, args, priority, share, scheduled_at, tags)
    SELECT soak.by(q.kind, n), q.queue, soak.args(n, q), CASE q.name WHEN 'plain' THEN n % 10 ELSE 4 END, CASE q.name WHEN 'plain' THEN n % 3 ELSE 0 END,
           clock_timestamp() + soak.spread(n, q.delay_ms) * interval '1 ms',
           CASE WHEN q.name = 'unwanted' AND n % 4 = 0 THEN '{unwanted}'::text[] END
      FROM generate_series(first, first + jobs - 1) AS n
      JOIN soak.part q ON n % 1000 BETWEEN q.low AND q.high AND q.how = 'insert';
    SELECT * INTO p FROM soak.part WHERE how = 'keys';
    PERFORM claimd.enqueue_many((SELECT jsonb_agg(soak.request(n, p) || jsonb_build_object('exclusive_key', 'key' || n % 13))
                                   FROM generate_series(first, first + jobs - 1) AS n WHERE n % 1000 BETWEEN p.low AND p.high));
    SELECT * INTO p FROM soak.part WHERE how = 'batch';
    PERFORM soak.put_batch(base, p) FROM generate_series(first, first + jobs - 1, 1000) AS base;
    SELECT * INTO p FROM soak.part WHERE how = 'chain';
    PERFORM soak.put_chain(base, p) FROM generate_series(first, first + jobs - 1, 1000) AS base;
    SELECT * INTO p FROM soak.part WHERE how = 'effect';
    PERFORM soak.put_orders(base, p) FROM generate_series(first, first + jobs - 1, 1000) AS base;
    SELECT * INTO p FROM soak.part WHERE how = 'unique';
    PERFORM soak.put_unique(base, p) FROM generate_series(first, first + jobs - 1, 1000) AS base;
END $$;

-- Inserts orders for more than is in stock.
CREATE FUNCTION soak.put_orders(base bigint, p soak.part) RETURNS void LANGUAGE sql AS $$
    INSERT INTO claimd.job (kind, args, metadata, backoff, max_attempts)
    SELECT p.kind, '{"sku": "cup", "quantity": 1}', jsonb_build_object('n', n), 'fixed:500ms', 1000
      FROM generate_series(base + p.low, base + p.high) AS n;
    UPDATE inventory.stock SET quantity = quantity + 3;
    UPDATE soak.stock SET quantity = quantity + 3;
$$;

-- Edits queued jobs of soak_edit with an even n: raises the version in their args.
CREATE FUNCTION soak.edit_some(most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    j record;
BEGIN
    FOR j IN SELECT id, args FROM claimd.job
              WHERE queue = 'soak_edit' AND state = 'available' AND (args ->> 'n')::bigint % 2 = 0 ORDER BY random() LIMIT most LOOP
        BEGIN
            INSERT INTO soak.act (op, job_id, answer)
            SELECT 'edit', j.id, claimd.edit(j.id, jsonb_build_object('args', j.args || jsonb_build_object('v', (j.args ->> 'v')::int + 1)));
        EXCEPTION WHEN SQLSTATE 'CL003' OR lock_not_available THEN
            INSERT INTO soak.act (op, job_id, answer) VALUES ('edit', j.id, SQLERRM);
        END;
    END LOOP;
END $$;

-- Edits some jobs for their next attempt, while they run or between two attempts: earlier and current runs keep their args.
CREATE FUNCTION soak.amend_some(most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    j record;
BEGIN
    FOR j IN SELECT id, args FROM claimd.job WHERE queue = 'soak_amend' AND attempt > 0 ORDER BY state DESC, random() LIMIT most LOOP
        BEGIN
            PERFORM claimd.edit(j.id, jsonb_build_object('args', j.args || jsonb_build_object('v', 1 + o.version)), o.version, 'next')
               FROM claimd.job o WHERE o.id = j.id;
            INSERT INTO soak.amend SELECT o.id, o.fence, o.version FROM claimd.job o WHERE o.id = j.id;
        EXCEPTION WHEN SQLSTATE 'CL003' OR lock_not_available THEN
            NULL; -- it has ended, or another edit came first
        END;
    END LOOP;
END $$;

-- Cancels some queued and some running jobs.
CREATE FUNCTION soak.cancel_some(most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    j record;
BEGIN
    FOR j IN (SELECT id FROM claimd.job WHERE queue = 'soak_cancel' AND kind <> 's_long' AND (args ->> 'n')::bigint % 4 = 1
               ORDER BY random() LIMIT most)
             UNION ALL
             (SELECT id FROM claimd.job WHERE queue = 'soak_cancel' AND kind = 's_long' AND state = 'running' LIMIT 1) LOOP
        BEGIN
            INSERT INTO soak.act (op, job_id, answer) SELECT 'cancel', j.id, claimd.cancel(j.id);
        EXCEPTION WHEN SQLSTATE 'CL003' OR lock_not_available THEN
            INSERT INTO soak.act (op, job_id, answer) VALUES ('cancel', j.id, SQLERRM);
        END;
    END LOOP;
END $$;

-- Retries jobs that have failed for good once, as an operator would.
CREATE FUNCTION soak.retry_some(most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    j record;
BEGIN
    FOR j IN SELECT a.job_id FROM claimd.job_attempt a
              WHERE a.error = 'told to fail' AND a.generation = 0
                AND NOT EXISTS (SELECT FROM soak.act t WHERE t.op = 'retry' AND t.job_id = a.job_id) LIMIT most LOOP
        INSERT INTO soak.act (op, job_id, answer) SELECT 'retry', j.job_id, claimd.retry(j.job_id);
    END LOOP;
END $$;

-- ---- a queue that refuses ----
-- A step of one of several producers: offers jobs until one is refused, which it offers again the next time.
CREATE FUNCTION soak.offer(who integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    mine bigint;
BEGIN
    INSERT INTO soak.crowd (open) SELECT count(*) FROM claimd.job WHERE queue = 'soak_open';
    FOR one IN 1..20 LOOP
        SELECT o.n INTO mine FROM soak.offer o WHERE o.who = offer.who AND o.job_id IS NULL;
        IF mine IS NULL THEN
            INSERT INTO soak.offer (who) VALUES (who) RETURNING n INTO mine;
        END IF;
        BEGIN
            UPDATE soak.offer o SET job_id = claimd.enqueue('s_plain', '{"n": -3, "ms": 20}', 'soak_open', 0) WHERE o.n = mine;
        EXCEPTION WHEN SQLSTATE 'CL005' THEN
            UPDATE soak.offer o SET refused = o.refused + 1 WHERE o.n = mine;
            EXIT;
        END;
    END LOOP;
    INSERT INTO soak.crowd (open) SELECT count(*) FROM claimd.job WHERE queue = 'soak_open';
END $$;

-- ---- priorities that age ----
-- Keeps the queue full of jobs of priority 0 (n = -4), and now and then adds one of priority 9 (n = -5).
CREATE FUNCTION soak.press(most integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO claimd.job (kind, queue, args, priority)
    SELECT 's_plain', 'soak_aged', '{"n": -4, "ms": 200}', 0
      FROM generate_series(1, most - (SELECT count(*) FROM claimd.job WHERE queue = 'soak_aged' AND priority = 0));
    INSERT INTO claimd.job (kind, queue, args, priority) SELECT 's_plain', 'soak_aged', '{"n": -5}', 9 WHERE random() < 0.1;
$$;

-- ---- schedules ----
CREATE FUNCTION soak.tick() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO soak.ticked (schedule, step, first_at)
    SELECT s.name, s.step, claimd.schedule_set(s.name, 's_plain', s.cron, jsonb_build_object('n', -1), missed => 'all')
      FROM (VALUES ('second', '* * * * * *', interval '1 s'), ('three', 'every 3s', interval '3 s')) AS s(name, cron, step);
END $$;

CREATE FUNCTION soak.tick_no_more() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM claimd.schedule_pause(t.schedule) FROM soak.ticked t;
    UPDATE soak.ticked t SET paused_at = clock_timestamp(), last_at = s.next_at FROM claimd.schedule s WHERE s.name = t.schedule;
END $$;
