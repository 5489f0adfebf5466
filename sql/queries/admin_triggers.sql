-- SPDX-License-Identifier: Apache-2.0
-- The first 20 triggers that others have put on claimd's tables and whose functions have no search_path of their own: they run
-- with the search_path of the daemons, which finds only PostgreSQL's names. Functions in C are left out, since they look up no
-- names by a path unless they choose to.
SELECT t.tgname, c.relname, t.tgfoid::regprocedure
  FROM pg_trigger t
  JOIN pg_class c ON c.oid = t.tgrelid
  JOIN pg_proc p ON p.oid = t.tgfoid
  JOIN pg_language l ON l.oid = p.prolang
 WHERE c.relnamespace = to_regnamespace('claimd') AND p.pronamespace <> c.relnamespace
   AND NOT t.tgisinternal AND t.tgparentid = 0 AND l.lanname NOT IN ('internal', 'c')
   AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE 'search\_path=%')
 ORDER BY c.relname, t.tgname LIMIT 20
