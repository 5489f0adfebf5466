-- SPDX-License-Identifier: Apache-2.0
-- Records a file that was loaded in this transaction, and its functions, which $3 names.
-- params: text, text, text[]
WITH file AS (
    INSERT INTO claimd.function_file AS f (name, digest) VALUES ($1, $2)
        ON CONFLICT ON CONSTRAINT function_file_pkey DO UPDATE SET digest = excluded.digest, loaded_at = clock_timestamp()
), loaded AS (
    INSERT INTO claimd.function_loaded AS l (signature, file, digest)
    SELECT {function_signature}, $1, {function_digest}
      FROM pg_catalog.pg_proc p
     WHERE p.pronamespace = 'claimd'::regnamespace AND p.proname = ANY ($3) AND p.xmin = pg_current_xact_id()::xid
        ON CONFLICT ON CONSTRAINT function_loaded_pkey DO UPDATE SET file = excluded.file, digest = excluded.digest
    RETURNING l.signature
)
DELETE FROM claimd.function_loaded l WHERE l.file = $1 AND l.signature NOT IN (SELECT n.signature FROM loaded n)
