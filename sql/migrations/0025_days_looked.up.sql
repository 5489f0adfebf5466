-- SPDX-License-Identifier: Apache-2.0
-- A clock that has gone back makes days of the past, and what ends meanwhile goes into them. When it is right again, they must not pass
-- for old: so what makes such a day leaves its look at the clock beside it, in the same transaction. (Before, a leader that died between
-- the two left a day that the next one deleted.)
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
