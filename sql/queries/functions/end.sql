-- SPDX-License-Identifier: Apache-2.0
-- Of which release the functions are from now on, and which files there are: others are forgotten.
-- params: int4, text[]
WITH version AS (
    UPDATE claimd.cluster SET functions_version = $1 WHERE functions_version <> $1
), gone AS (
    DELETE FROM claimd.function_loaded WHERE file <> ALL ($2)
)
DELETE FROM claimd.function_file WHERE name <> ALL ($2)
