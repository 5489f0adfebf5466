-- SPDX-License-Identifier: Apache-2.0
-- Whether jobs belong to the roles that create them.
-- shows: owners text
-- tables: record cluster
SELECT CASE WHEN owners THEN 'on' ELSE 'off' END AS owners FROM claimd.cluster
