-- SPDX-License-Identifier: Apache-2.0
-- Cron expressions: from text to fields, and from fields to the next time.

-- Returns the values of one field such as '*/5' or 'mon-fri,sun'. `words`: the names of low, low + 1, …
CREATE OR REPLACE FUNCTION cron_field(field text, label text, low integer, high integer, words text[]) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part text;
    piece text[];
    first integer;
    last integer;
    step integer;
    found integer[] := '{}';
    allowed text := 'the ' || label || ' is ' || low || ' to ' || high || CASE WHEN words IS NOT NULL THEN ' or '
                    || words[1] || ' to ' || words[cardinality(words)] ELSE '' END
                    || ': *, a value, a range a-b, a list a,b, or a step */n or a-b/n';
BEGIN
    IF field = '*' THEN
        RETURN ARRAY(SELECT generate_series(low, CASE label WHEN 'weekday' THEN 6 ELSE high END));
    END IF;
    FOREACH part IN ARRAY string_to_array(lower(field), ',') LOOP
        piece := regexp_match(part, '^(?:(\*)|(\d{1,4}|[a-z]{3})(?:-(\d{1,4}|[a-z]{3}))?)(?:/(\d{1,4}))?$');
        IF piece IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('cron: ''%s'': %s', part, allowed);
        END IF;
        first := CASE WHEN piece[1] IS NOT NULL THEN low
                      WHEN piece[2] ~ '^\d' THEN piece[2]::integer
                      ELSE low - 1 + array_position(words, piece[2]) END;
        last := CASE WHEN piece[1] IS NOT NULL THEN high
                     WHEN piece[3] IS NULL THEN first
                     WHEN piece[3] ~ '^\d' THEN piece[3]::integer
                     ELSE low - 1 + array_position(words, piece[3]) END;
        step := COALESCE(piece[4]::integer, 1);
        IF label = 'weekday' THEN
            -- Sunday is 0 and 7, and the last day of a range as well: fri-sun.
            last := CASE WHEN piece[1] IS NOT NULL THEN 6 WHEN last = 0 AND piece[3] IS NOT NULL THEN 7 ELSE last END;
        END IF;
        IF first IS NULL OR last IS NULL OR first NOT BETWEEN low AND high OR last NOT BETWEEN first AND high THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('cron: ''%s'': %s', part, allowed);
        END IF;
        IF piece[4] IS NOT NULL AND (step NOT BETWEEN 1 AND high OR (piece[1] IS NULL AND piece[3] IS NULL)) THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002',
                MESSAGE = format('cron: ''%s'': a step of the %s is 1 to %s, of * or of a range: */n or a-b/n%s', part, label, high,
                                 CASE WHEN step > high THEN '; for longer ones see ''every 90m''' ELSE '' END);
        END IF;
        found := found || ARRAY(SELECT CASE WHEN label = 'weekday' THEN n % 7 ELSE n END FROM generate_series(first, last, step) n);
    END LOOP;
    RETURN ARRAY(SELECT DISTINCT n FROM unnest(found) n ORDER BY n);
END $$;

CREATE OR REPLACE FUNCTION cron_parse(cron text) RETURNS cron_fields
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    plain text := lower(btrim(regexp_replace(cron, '\s+', ' ', 'g')));
    piece text[] := regexp_match(plain, '^every (\d{1,9}) ?([smhd])$');
    part text[];
    f cron_fields;
BEGIN
    IF piece IS NOT NULL THEN
        f.every_s := piece[1]::bigint * CASE piece[2] WHEN 's' THEN 1 WHEN 'm' THEN 60 WHEN 'h' THEN 3600 ELSE 86400 END;
        IF f.every_s NOT BETWEEN 1 AND 366 * 86400 THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('cron: ''%s'': every 1s to every 366d', plain);
        END IF;
        RETURN f;
    END IF;
    part := string_to_array(CASE plain WHEN '@hourly' THEN '0 * * * *' WHEN '@daily' THEN '0 0 * * *'
                                       WHEN '@midnight' THEN '0 0 * * *' WHEN '@weekly' THEN '0 0 * * 0'
                                       WHEN '@monthly' THEN '0 0 1 * *' WHEN '@yearly' THEN '0 0 1 1 *'
                                       WHEN '@annually' THEN '0 0 1 1 *' ELSE plain END, ' ');
    IF cardinality(part) = 5 THEN
        part := array_prepend('0', part);
    END IF;
    IF cron IS NULL OR octet_length(cron) > 1000 OR cardinality(part) <> 6 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = 'cron: ' || COALESCE(quote_literal(left(plain, 100)), 'NULL')
                || ': must be five fields (minute hour day month weekday), six with the second in front, @hourly, @daily, '
                || '@weekly, @monthly, @yearly, or every N with s, m, h or d, such as ''every 90s''';
    END IF;
    f.seconds := cron_field(part[1], 'second', 0, 59, NULL);
    f.minutes := cron_field(part[2], 'minute', 0, 59, NULL);
    f.hours := cron_field(part[3], 'hour', 0, 23, NULL);
    f.days := cron_field(part[4], 'day', 1, 31, NULL);
    f.months := cron_field(part[5], 'month', 1, 12,
                           '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
    f.weekdays := cron_field(part[6], 'weekday', 0, 7, '{sun,mon,tue,wed,thu,fri,sat}');
    f.either := part[4] !~ '^\*' AND part[6] !~ '^\*';
    RETURN f;
END $$;

-- Returns the first time of day that matches, at or after hour:minute:second; NULL if none is left on this day.
CREATE OR REPLACE FUNCTION cron_time(f cron_fields, hour integer, minute integer, second integer) RETURNS interval
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    h integer;
    m integer;
    s integer;
BEGIN
    FOREACH h IN ARRAY f.hours LOOP
        CONTINUE WHEN h < hour;
        IF h > hour THEN
            RETURN make_interval(hours => h, mins => f.minutes[1], secs => f.seconds[1]);
        END IF;
        FOREACH m IN ARRAY f.minutes LOOP
            CONTINUE WHEN m < minute;
            IF m > minute THEN
                RETURN make_interval(hours => h, mins => m, secs => f.seconds[1]);
            END IF;
            FOREACH s IN ARRAY f.seconds LOOP
                CONTINUE WHEN s < second;
                RETURN make_interval(hours => h, mins => m, secs => s);
            END LOOP;
        END LOOP;
    END LOOP;
    RETURN NULL;
END $$;

-- Returns the first day that matches, at or after `day`, or NULL if none does within 40 years (if an expression ever
-- matches, it does so within 12).
CREATE OR REPLACE FUNCTION cron_day(f cron_fields, day date) RETURNS date
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    month date := date_trunc('month', day)::date;
    first integer := EXTRACT(day FROM day);
    last integer;
    weekday integer; -- of the day before the first of the month
    by_number boolean;
    by_weekday boolean;
BEGIN
    FOR n IN 1..40 * 12 LOOP
        IF EXTRACT(month FROM month)::integer = ANY (f.months) THEN
            last := EXTRACT(day FROM month + interval '1 month' - interval '1 day');
            weekday := EXTRACT(dow FROM month)::integer + 6;
            FOR d IN first..last LOOP
                by_number := d = ANY (f.days);
                by_weekday := (weekday + d) % 7 = ANY (f.weekdays);
                IF (by_number AND by_weekday) OR (f.either AND (by_number OR by_weekday)) THEN
                    RETURN month + (d - 1);
                END IF;
            END LOOP;
        END IF;
        month := (month + interval '1 month')::date;
        first := 1;
    END LOOP;
    RETURN NULL;
END $$;

-- Returns the first reading of the clock that matches, at or after `reading`.
CREATE OR REPLACE FUNCTION cron_reading(f cron_fields, reading timestamp) RETURNS timestamp
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    today date := reading::date;
    day date := cron_day(f, today);
    at interval;
BEGIN
    IF day = today THEN
        at := cron_time(f, EXTRACT(hour FROM reading)::integer, EXTRACT(minute FROM reading)::integer,
                        EXTRACT(second FROM reading)::integer);
        IF at IS NOT NULL THEN
            RETURN day + at;
        END IF;
        day := cron_day(f, today + 1);
    END IF;
    IF day IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'cron: no day ever matches its day, month and weekday';
    END IF;
    RETURN day + cron_time(f, 0, 0, 0);
END $$;

-- Returns how far a zone's clock is ahead of UTC.
CREATE OR REPLACE FUNCTION cron_offset(at timestamptz, zone text) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN (at AT TIME ZONE zone) - (at AT TIME ZONE 'UTC');

-- Returns when a zone's clock was changed in (low, high]; the caller knows that it was.
CREATE OR REPLACE FUNCTION cron_change(low timestamptz, high timestamptz, zone text) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    before interval := cron_offset(low, zone);
    a bigint := floor(EXTRACT(epoch FROM low));
    b bigint := ceil(EXTRACT(epoch FROM high));
    middle bigint;
BEGIN
    WHILE b - a > 1 LOOP
        middle := (a + b) / 2;
        IF cron_offset(to_timestamp(middle), zone) = before THEN
            a := middle;
        ELSE
            b := middle;
        END IF;
    END LOOP;
    RETURN to_timestamp(b);
END $$;

-- Returns the first moment when a zone's clock shows `reading`. For a reading that is skipped: the moment when the clock is put forward.
CREATE OR REPLACE FUNCTION cron_moment(reading timestamp, zone text) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    near timestamptz := reading AT TIME ZONE zone;
    before interval := cron_offset(near - interval '26 hours', zone);
    later interval := cron_offset(near + interval '26 hours', zone);
    early timestamptz := (reading - before) AT TIME ZONE 'UTC';
    late timestamptz := (reading - later) AT TIME ZONE 'UTC';
BEGIN
    IF early AT TIME ZONE zone = reading THEN
        RETURN early;
    END IF;
    IF late AT TIME ZONE zone = reading THEN
        RETURN late;
    END IF;
    RETURN cron_change(late, early, zone);
END $$;

-- Returns the next tick of an expression with fixed hours: each reading of the clock counts once, so the second pass
-- of a repeated hour has no ticks.
CREATE OR REPLACE FUNCTION cron_next_reading(f cron_fields, zone text, after timestamptz) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    reading timestamp := date_trunc('second', after AT TIME ZONE zone);
    shown timestamptz := cron_moment(reading, zone);
    changed timestamptz;
    found timestamptz;
BEGIN
    IF shown < date_trunc('second', after) THEN
        changed := cron_change(shown, after, zone);
        reading := (changed AT TIME ZONE 'UTC') + cron_offset(shown, zone) - interval '1 second';
    END IF;
    LOOP
        reading := cron_reading(f, reading + interval '1 second');
        found := cron_moment(reading, zone);
        EXIT WHEN found > after;
    END LOOP;
    RETURN found;
END $$;

-- Returns the next tick of an expression that matches every hour: the moments when the clock shows a match, in both passes of a
-- repeated hour. Searches from one change of the clock to the next; two changes are more than 3 days apart.
CREATE OR REPLACE FUNCTION cron_next_moment(f cron_fields, zone text, after timestamptz) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    position timestamptz := after;
    reading timestamp := date_trunc('second', after AT TIME ZONE zone) + interval '1 second'; -- the first that counts
    ahead interval;
    found timestamptz;
    horizon timestamptz;
BEGIN
    LOOP
        ahead := cron_offset(position, zone);
        reading := cron_reading(f, reading);
        found := (reading - ahead) AT TIME ZONE 'UTC';
        horizon := LEAST(found, position + interval '3 days');
        IF cron_offset(horizon, zone) <> ahead THEN
            position := cron_change(position, horizon, zone);
            IF found < position THEN
                RETURN found;
            END IF;
            reading := position AT TIME ZONE zone;
        ELSIF horizon = found THEN
            RETURN found;
        ELSE
            position := found - interval '2 days'; -- nothing matches up to there, be a whole day left out on the way
            reading := date_trunc('second', position AT TIME ZONE zone) + interval '1 second';
        END IF;
    END LOOP;
END $$;

-- Does the same as cron_next(), for arguments that were checked before.
CREATE OR REPLACE FUNCTION cron_after(cron text, zone text, after timestamptz, start timestamptz) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    f cron_fields := cron_parse(cron);
BEGIN
    IF f.every_s IS NOT NULL THEN
        RETURN start + make_interval(secs => (floor(EXTRACT(epoch FROM after - start) / f.every_s) + 1) * f.every_s);
    END IF;
    IF cardinality(f.hours) = 24 THEN
        RETURN cron_next_moment(f, zone, after);
    END IF;
    RETURN cron_next_reading(f, zone, after);
END $$;

-- Returns the last tick in (after, upto], or NULL if there is none. It bisects, so that the ticks of a year of
-- minutes are not visited one by one.
CREATE OR REPLACE FUNCTION cron_last(cron text, zone text, after timestamptz, upto timestamptz, start timestamptz) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    low timestamptz := after;
    high timestamptz := upto; -- no tick in (high, upto]
    best timestamptz;
    tick timestamptz := cron_after(cron, zone, after, start);
BEGIN
    WHILE tick <= upto LOOP
        best := tick;
        low := tick;
        LOOP
            tick := cron_after(cron, zone, low + (high - low) / 2, start);
            EXIT WHEN tick <= upto;
            high := low + (high - low) / 2;
            EXIT WHEN high - low < interval '1 second';
        END LOOP;
    END LOOP;
    RETURN best;
END $$;

-- Returns a zone's name as PostgreSQL spells it. Slow (40 ms), because it reads all names.
CREATE OR REPLACE FUNCTION cron_zone(zone text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found text := (SELECT name FROM pg_timezone_names WHERE lower(name) = lower(zone) ORDER BY name <> zone LIMIT 1);
BEGIN
    IF found IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = 'zone: ' || COALESCE(quote_literal(left(zone, 100)), 'NULL')
                || ' is not in pg_timezone_names: must be a name such as ''UTC'' or ''Europe/Berlin''';
    END IF;
    RETURN found;
END $$;

-- Returns the first tick after `after`. `start` is where "every" counts from.
CREATE OR REPLACE FUNCTION cron_next(cron text, zone text DEFAULT 'UTC', after timestamptz DEFAULT now(),
                          start timestamptz DEFAULT 'epoch') RETURNS timestamptz
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found timestamptz;
BEGIN
    IF zone IS DISTINCT FROM 'UTC' THEN
        PERFORM cron_zone(zone);
    END IF;
    IF after IS NULL OR after NOT BETWEEN '1900-01-01 00:00:00+00' AND '2286-01-01 00:00:00+00' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'after: must lie between the years 1900 and 2286';
    END IF;
    IF start IS NULL OR start NOT BETWEEN '1900-01-01 00:00:00+00' AND '2286-01-01 00:00:00+00' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'start: must lie between the years 1900 and 2286';
    END IF;
    RETURN cron_after(cron, zone, after, start);
END $$;

REVOKE ALL ON FUNCTION cron_field, cron_parse, cron_time, cron_day, cron_reading, cron_offset, cron_change,
    cron_moment, cron_next_reading, cron_next_moment, cron_after, cron_last, cron_zone, cron_next
    FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION cron_next TO claimd_admin, claimd_producer, claimd_reader;
