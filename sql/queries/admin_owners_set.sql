-- SPDX-License-Identifier: Apache-2.0
-- From now on jobs belong to the roles that make them, or to nobody any more.
-- params: owners text on|off
-- then: record cluster = owners
-- method: POST
SELECT claimd.set_owners($1 = 'on')
