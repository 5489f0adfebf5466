-- SPDX-License-Identifier: Apache-2.0
-- Old history is deleted by PostgreSQL's clock again, although that has jumped.
SELECT claimd.trust_clock()
