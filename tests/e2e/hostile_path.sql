-- SPDX-License-Identifier: Apache-2.0
-- What a producer can plant where everybody may create (PostgreSQL 14's `public`) and in schemas that are named as the users: functions
-- and operators that match the arguments of claimd's statements better than PostgreSQL's own, which take other types or any. Each
-- does what the real one does, and notes in loot.ran who has run it. Read by psql, as a superuser, once per database.
\set ON_ERROR_STOP on
\set QUIET on
SET client_min_messages = warning;
SET search_path = pg_catalog, pg_temp;
SET check_function_bodies = off; -- for speed
BEGIN;

CREATE SCHEMA loot;
CREATE SEQUENCE loot.runs; -- counts what was rolled back, too
CREATE TABLE loot.ran (what text, as_user name);
CREATE FUNCTION loot.note(what text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nextval('loot.runs');
    INSERT INTO loot.ran VALUES (what, current_user);
    RETURN true;
END $$;
GRANT USAGE ON SCHEMA loot TO PUBLIC;
GRANT USAGE ON SEQUENCE loot.runs TO PUBLIC;
GRANT INSERT ON loot.ran TO PUBLIC;

CREATE TABLE loot.element AS
SELECT t::regtype::oid AS type FROM unnest('{text,name,bigint,integer,smallint,boolean,jsonb,timestamptz,uuid,tid}'::text[]) AS t;

CREATE TABLE loot.number AS
SELECT t::regtype::oid AS type, rank FROM unnest('{smallint,integer,bigint,numeric}'::text[]) WITH ORDINALITY AS u(t, rank);

-- A type that fits better than the declared one.
CREATE TABLE loot.instead AS
SELECT d.oid AS declared, e.type AS element, CASE WHEN d.typname IN ('anyarray', 'anycompatiblearray') THEN t.typarray ELSE t.oid END AS type
  FROM loot.element e JOIN pg_type t ON t.oid = e.type
  JOIN pg_type d ON d.typname IN ('anyelement', 'anynonarray', 'anycompatible', 'anycompatiblenonarray', 'anyarray', 'anycompatiblearray')
                 OR (d.typname = 'int8' AND t.typname IN ('int2', 'int4'))
                 OR (d.typname IN ('numeric', 'float8') AND t.typname IN ('int4', 'int8'))
                 OR (d.typname = 'text' AND t.typname = 'name')
 WHERE d.typnamespace = 'pg_catalog'::regnamespace;

-- The functions and operators that PostgreSQL has, with the better types and what it returns then.
CREATE VIEW loot.better AS
WITH signature AS (
    SELECT oid, proname AS name, proargtypes::oid[] AS declared, prorettype AS result, proretset AS is_set, false AS is_operator
      FROM pg_proc
     WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND proargmodes IS NULL AND provariadic = 0
    UNION ALL
    SELECT oid, oprname, ARRAY[oprleft, oprright], oprresult, false, true
      FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b'
), changed AS (
    SELECT s.oid, s.is_operator, e.type AS element, array_agg(COALESCE(i.type, a.type) ORDER BY a.n) AS types
      FROM signature s CROSS JOIN loot.element e CROSS JOIN LATERAL unnest(s.declared) WITH ORDINALITY AS a(type, n)
      JOIN pg_type t ON t.oid = a.type
      LEFT JOIN loot.instead i ON i.declared = a.type AND i.element = e.type
           AND NOT (s.is_operator AND a.type IN (SELECT type FROM loot.number))
     GROUP BY s.oid, s.is_operator, e.type
    HAVING count(i.type) > 0 AND bool_and(t.typtype <> 'p' OR i.type IS NOT NULL)
)
SELECT DISTINCT s.name, c.types, COALESCE(i.type, s.result) AS result, s.is_set, s.is_operator
  FROM changed c JOIN signature s ON s.oid = c.oid AND s.is_operator = c.is_operator
  LEFT JOIN loot.instead i ON i.declared = s.result AND i.element = c.element
       AND s.result NOT IN ('text'::regtype, 'bigint'::regtype, 'numeric'::regtype, 'double precision'::regtype)
 WHERE NOT EXISTS (SELECT FROM signature x WHERE x.name = s.name AND x.declared = c.types AND x.is_operator = s.is_operator);

CREATE FUNCTION loot.list(types oid[]) RETURNS text LANGUAGE sql STABLE
RETURN (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n) FROM unnest(types) WITH ORDINALITY AS u(t, n));

CREATE PROCEDURE loot.plant_function(place text, name text, types oid[], result oid, is_set boolean) LANGUAGE plpgsql AS $$
DECLARE
    args text := (SELECT string_agg('$' || n, ', ' ORDER BY n) FROM generate_series(1, cardinality(types)) AS n);
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS %s%s LANGUAGE plpgsql AS $f$ BEGIN PERFORM loot.note(%L); %s; END $f$',
                   place, name, loot.list(types), CASE WHEN is_set THEN 'SETOF ' ELSE '' END, format_type(result, NULL),
                   format('%I.%I(%s)', place, name, loot.list(types)),
                   format(CASE WHEN is_set THEN 'RETURN QUERY SELECT * FROM pg_catalog.%I(%s)' ELSE 'RETURN pg_catalog.%I(%s)' END,
                          name, args));
EXCEPTION WHEN OTHERS THEN
    NULL; -- not every one can be written so
END $$;

CREATE PROCEDURE loot.plant_operator(place text, name text, l oid, r oid, result oid, as_type text) LANGUAGE plpgsql AS $$
DECLARE
    body text := format('op_%s_%s_%s', encode(convert_to(name, 'UTF8'), 'hex'), l, r);
BEGIN
    EXECUTE format('CREATE FUNCTION %I.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN PERFORM loot.note(%L); '
                   'RETURN $1%s OPERATOR(pg_catalog.%s) $2%s; END $f$',
                   place, body, loot.list(ARRAY[l, r]), format_type(result, NULL),
                   format('%I.%s(%s)', place, name, loot.list(ARRAY[l, r])), as_type, name, as_type);
    EXECUTE format('CREATE OPERATOR %I.%s (FUNCTION = %I.%I, LEFTARG = %s, RIGHTARG = %s)', place, name, place, body,
                   format_type(l, NULL), format_type(r, NULL));
EXCEPTION WHEN OTHERS THEN
    NULL;
END $$;

-- Better matches than PostgreSQL's own.
CREATE PROCEDURE loot.plant(place text) LANGUAGE plpgsql AS $$
DECLARE
    f record;
    o record;
BEGIN
    FOR f IN SELECT * FROM loot.better LOOP
        IF f.is_operator THEN
            CALL loot.plant_operator(place, f.name, f.types[1], f.types[2], f.result, '');
        ELSE
            CALL loot.plant_function(place, f.name, f.types, f.result, f.is_set);
        END IF;
    END LOOP;
    -- Of two numbers of different types, for which PostgreSQL converts one.
    FOR o IN SELECT p.oprname, l.type AS l, r.type AS r, p.oprresult, format('::%s', p.oprleft::regtype) AS wide
               FROM pg_operator p
               JOIN loot.number l ON l.rank <= (SELECT rank FROM loot.number WHERE type = p.oprleft)
               JOIN loot.number r ON r.rank <= (SELECT rank FROM loot.number WHERE type = p.oprright)
              WHERE p.oprnamespace = 'pg_catalog'::regnamespace AND p.oprleft = p.oprright
                AND (l.type = p.oprleft OR r.type = p.oprright OR p.oprleft = 'bigint'::regtype)
                AND NOT EXISTS (SELECT FROM pg_operator q WHERE q.oprnamespace = 'pg_catalog'::regnamespace
                                                            AND q.oprname = p.oprname AND q.oprleft = l.type AND q.oprright = r.type) LOOP
        CALL loot.plant_operator(place, o.oprname, o.l, o.r, o.oprresult, o.wide);
    END LOOP;
    -- In place of those that take any number of arguments.
    FOR f IN SELECT n.name, array_fill(e.type, ARRAY[n.count]) AS rest, n.count
               FROM (VALUES ('format', 1), ('format', 2), ('format', 3), ('concat', 2)) AS n(name, count) CROSS JOIN loot.element e LOOP
        CALL loot.plant_function(place, f.name, 'text'::regtype::oid || f.rest, 'text'::regtype, false);
    END LOOP;
END $$;

-- Copies of all that PostgreSQL has: for a path in which pg_catalog comes last. Types as well, as domains that note their use.
CREATE PROCEDURE loot.plant_copies(place text) LANGUAGE plpgsql AS $$
DECLARE
    f record;
BEGIN
    FOR f IN SELECT p.* FROM pg_proc p
              WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.proargmodes IS NULL AND p.provariadic = 0 LOOP
        CALL loot.plant_function(place, f.proname, f.proargtypes::oid[], f.prorettype, f.proretset);
    END LOOP;
    FOR f IN SELECT p.* FROM pg_operator p WHERE p.oprnamespace = 'pg_catalog'::regnamespace AND p.oprkind = 'b' LOOP
        CALL loot.plant_operator(place, f.oprname, f.oprleft, f.oprright, f.oprresult, '');
    END LOOP;
    FOR f IN SELECT typname FROM pg_type t
              WHERE t.typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typcategory <> 'A' LOOP
        EXECUTE format('CREATE DOMAIN %1$I.%2$I AS pg_catalog.%2$I CHECK (loot.note(%3$L))', place, f.typname, place || '.' || f.typname);
    END LOOP;
END $$;

-- By a role that may do no more than any login.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'mallory') THEN
        CREATE ROLE mallory;
    END IF;
END $$;
GRANT CREATE ON SCHEMA public TO PUBLIC;
GRANT SELECT ON loot.element, loot.number, loot.instead, loot.better TO mallory;
CREATE SCHEMA fleet_scheduler AUTHORIZATION mallory;
CREATE SCHEMA copies AUTHORIZATION mallory;
GRANT USAGE ON SCHEMA fleet_scheduler, copies TO PUBLIC;
SET ROLE mallory;
CALL loot.plant('public');
CALL loot.plant('fleet_scheduler');
CALL loot.plant_copies('copies');
RESET ROLE;
COMMIT;
