-- SPDX-License-Identifier: Apache-2.0
-- Suggestions for mistyped names and values, and fields of JSON as typed values.

-- Returns the edit distance of two texts: how many letters are inserted, left out, changed or swapped with the next one.
CREATE OR REPLACE FUNCTION edits(a text, b text) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    second integer[];
    before integer[];
    now integer[] := ARRAY(SELECT generate_series(0, length(b)));
BEGIN
    FOR i IN 1..length(a) LOOP
        second := before;
        before := now;
        now[1] := i;
        FOR k IN 1..length(b) LOOP
            now[k + 1] := LEAST(before[k + 1] + 1, now[k] + 1, before[k] + (substr(a, i, 1) <> substr(b, k, 1))::integer,
                                CASE WHEN i > 1 AND k > 1 AND substr(a, i - 1, 2) = reverse(substr(b, k - 1, 2)) THEN second[k - 1] + 1 END);
        END LOOP;
    END LOOP;
    RETURN now[length(b) + 1];
END $$;

-- Returns what to say about a name that is not among the known ones: lists these, and suggests the nearest one if at most a third of
-- its letters differ (one or two in short names), or if it begins with the given name. The same rules as in base/nearest.h.
CREATE OR REPLACE FUNCTION why_unknown(name text, known text[]) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT concat('unknown, must be one of ', array_to_string(known, ', '),
                  (SELECT format('; did you mean ''%s''?', c.word)
                     FROM (SELECT u.word, u.n,
                                  CASE WHEN length(name) >= 2 AND starts_with(u.word, name) THEN 1 ELSE edits(left(name, 80), u.word) END AS edits
                             FROM unnest(known) WITH ORDINALITY AS u(word, n)) AS c
                    WHERE c.edits <= CASE WHEN length(c.word) > 5 THEN length(c.word) / 3 WHEN length(c.word) > 3 THEN 2 ELSE 1 END
                    ORDER BY c.edits, c.n LIMIT 1))
$$;

-- Returns the complaint about the first field of a patch that is not among the known ones, or NULL if all are known.
CREATE OR REPLACE FUNCTION why_not_known(patch jsonb, known text[]) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT format('patch.%s: %s', left(min(k), 64), why_unknown(min(k), known)) FROM jsonb_object_keys(patch - known) AS k HAVING count(*) > 0
$$;

-- Returns the record with this value of a field. Raises CL002 if the value has another type; `place` says in the
-- message where the value came from.
CREATE OR REPLACE FUNCTION with_value(r anyelement, field text, value jsonb, place text) RETURNS anyelement
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN jsonb_populate_record(r, jsonb_build_object(field, value));
EXCEPTION WHEN data_exception THEN
    RAISE EXCEPTION USING ERRCODE = 'CL002',
        MESSAGE = format('%s.%s: must be of type %s: %s', place, field,
                         (SELECT format_type(a.atttypid, a.atttypmod)
                            FROM pg_attribute a JOIN pg_type t ON t.typrelid = a.attrelid
                           WHERE t.oid = pg_typeof(r) AND a.attname = field), SQLERRM);
END $$;

REVOKE ALL ON FUNCTION edits, why_unknown, why_not_known, with_value FROM PUBLIC, {roles};
