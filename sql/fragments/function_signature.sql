-- SPDX-License-Identifier: Apache-2.0
-- A function `p` of pg_proc by its name and types, whatever the search_path.
p.proname || '(' || COALESCE((SELECT string_agg(t.typname, ', ' ORDER BY a.n)
                                FROM unnest(p.proargtypes) WITH ORDINALITY AS a(oid, n)
                                JOIN pg_catalog.pg_type t ON t.oid = a.oid), '') || ')'
