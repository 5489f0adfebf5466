-- SPDX-License-Identifier: Apache-2.0
-- From now on, new jobs belong to the roles that create them, or to no role.
-- params: owners text on|off
-- then: record cluster = owners
-- method: POST
SELECT claimd.set_owners($1 = 'on')
