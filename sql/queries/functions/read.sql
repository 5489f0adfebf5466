-- SPDX-License-Identifier: Apache-2.0
-- The files of functions as they were loaded, and of which release the functions are.
SELECT f.name, f.digest, c.functions_version FROM claimd.cluster c LEFT JOIN claimd.function_file f ON true
