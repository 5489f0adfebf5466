-- SPDX-License-Identifier: Apache-2.0
-- The first 20 functions that differ from what `claimctl db migrate` has loaded, with their files, and whether they still exist.
SELECT l.signature, l.file, p.signature IS NOT NULL AS is_there
  FROM claimd.function_loaded l
  LEFT JOIN (SELECT {function_signature} AS signature, {function_digest} AS digest
               FROM pg_catalog.pg_proc p
              WHERE p.pronamespace = 'claimd'::regnamespace) AS p USING (signature)
 WHERE p.digest IS DISTINCT FROM l.digest
 ORDER BY l.signature LIMIT 20
