-- SPDX-License-Identifier: Apache-2.0
-- Do jobs belong to the roles that make them?
SELECT CASE WHEN owners THEN 'on' ELSE 'off' END AS owners FROM claimd.cluster
