-- SPDX-License-Identifier: Apache-2.0
-- Everything of claimd in this database. The roles stay: other databases of the cluster may use them.
DROP SCHEMA claimd CASCADE;
