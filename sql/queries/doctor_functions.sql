-- SPDX-License-Identifier: Apache-2.0
-- Functions that are not as `claimctl db migrate` has loaded them, with their files and whether they are there. The first 20.
SELECT l.signature, l.file, p.signature IS NOT NULL AS is_there
  FROM claimd.function_loaded l
  LEFT JOIN (SELECT {function_signature} AS signature, {function_digest} AS digest
               FROM pg_catalog.pg_proc p
              WHERE p.pronamespace = 'claimd'::regnamespace) AS p USING (signature)
 WHERE p.digest IS DISTINCT FROM l.digest
 ORDER BY l.signature LIMIT 20
