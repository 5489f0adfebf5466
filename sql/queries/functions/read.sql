-- SPDX-License-Identifier: Apache-2.0
-- The files of functions as they were loaded, and the release that the functions belong to.
SELECT f.name, f.digest, c.functions_version FROM claimd.cluster c LEFT JOIN claimd.function_file f ON true
