-- SPDX-License-Identifier: Apache-2.0
-- The name and the types of a function `p` of pg_proc, whatever the search_path is.
p.proname || '(' || COALESCE((SELECT string_agg(t.typname, ', ' ORDER BY a.n)
                                FROM unnest(p.proargtypes) WITH ORDINALITY AS a(oid, n)
                                JOIN pg_catalog.pg_type t ON t.oid = a.oid), '') || ')'
