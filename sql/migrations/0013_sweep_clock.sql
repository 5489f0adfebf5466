-- SPDX-License-Identifier: Apache-2.0
-- When the leader last looked whether history is old enough to be deleted, by PostgreSQL's clock: where that has jumped ahead since,
-- nothing is deleted for a day (model/sweep_clock.h). The guide: docs/guide/retention.md.
ALTER TABLE cluster
    ADD COLUMN sweep_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN sweep_hold_us bigint NOT NULL DEFAULT 0; -- for so much longer nothing is deleted

-- The clock is right, whatever it did: the leader deletes what is old by it, from the next second on.
CREATE FUNCTION trust_clock() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE claimd.cluster SET sweep_at = clock_timestamp(), sweep_hold_us = 0
$$;

-- Waits for nothing that is done to a day: after a step of the clock nothing can end before this. A clock that has gone back makes days
-- of the past, and what ends meanwhile goes into them. When it is right again, they must not pass for old, even if this leader dies now:
-- so its look at the clock is stored with the days.
CREATE OR REPLACE FUNCTION ensure_days(ahead integer DEFAULT 14) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    day date;
    name text;
    made integer := 0;
BEGIN
    IF ahead IS NULL OR ahead NOT BETWEEN 0 AND 366 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'ahead: must be 0 to 366 days';
    END IF;
    FOR n IN 0..ahead LOOP
        day := (clock_timestamp() AT TIME ZONE 'UTC')::date + n;
        name := 'job_history_' || to_char(day, 'YYYYMMDD');
        IF to_regclass('claimd.' || name) IS NULL THEN
            -- Two leaders would collide on the names. ATTACH takes this very lock, and only who owns the table can hold it: any
            -- login can hold an advisory lock, and a worker's a row of `cluster`. Not its days: one may be getting an index.
            LOCK TABLE ONLY claimd.job_history IN SHARE UPDATE EXCLUSIVE MODE;
        END IF;
        IF to_regclass('claimd.' || name) IS NULL THEN
            EXECUTE format('CREATE TABLE claimd.%I (LIKE claimd.job_history INCLUDING ALL)', name);
            EXECUTE format('ALTER TABLE claimd.job_history ATTACH PARTITION claimd.%I FOR VALUES FROM (%L) TO (%L)', name,
                           day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
            made := made + 1;
        END IF;
    END LOOP;
    IF made > 0 THEN
        UPDATE claimd.cluster SET sweep_at = clock_timestamp() WHERE sweep_at > clock_timestamp();
    END IF;
    RETURN made;
END $$;

REVOKE ALL ON FUNCTION trust_clock FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trust_clock TO claimd_admin;

-- ---- down ----
DROP FUNCTION trust_clock;
ALTER TABLE cluster DROP COLUMN sweep_hold_us, DROP COLUMN sweep_at;
CREATE OR REPLACE FUNCTION ensure_days(ahead integer DEFAULT 14) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    day date;
    name text;
    made integer := 0;
BEGIN
    IF ahead IS NULL OR ahead NOT BETWEEN 0 AND 366 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'ahead: must be 0 to 366 days';
    END IF;
    FOR n IN 0..ahead LOOP
        day := (clock_timestamp() AT TIME ZONE 'UTC')::date + n;
        name := 'job_history_' || to_char(day, 'YYYYMMDD');
        IF to_regclass('claimd.' || name) IS NULL THEN
            -- Two leaders would collide on the names. ATTACH takes this very lock, and only who owns the table can hold it: any
            -- login can hold an advisory lock, and a worker's a row of `cluster`.
            LOCK TABLE job_history IN SHARE UPDATE EXCLUSIVE MODE;
        END IF;
        IF to_regclass('claimd.' || name) IS NULL THEN
            EXECUTE format('CREATE TABLE claimd.%I (LIKE claimd.job_history INCLUDING ALL)', name);
            EXECUTE format('ALTER TABLE claimd.job_history ATTACH PARTITION claimd.%I FOR VALUES FROM (%L) TO (%L)', name,
                           day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
END $$;
