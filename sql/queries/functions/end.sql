-- SPDX-License-Identifier: Apache-2.0
-- Stores the release of the functions ($1), and deletes the records of files that are not in $2.
-- params: int4, text[]
WITH version AS (
    UPDATE claimd.cluster SET functions_version = $1 WHERE functions_version <> $1
), gone AS (
    DELETE FROM claimd.function_loaded WHERE file <> ALL ($2)
)
DELETE FROM claimd.function_file WHERE name <> ALL ($2)
