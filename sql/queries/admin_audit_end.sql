-- SPDX-License-Identifier: Apache-2.0
-- Records the HTTP status of the answer to an act. Index: web_audit_pkey.
-- params: int8, int4
UPDATE claimd.web_audit SET status = $2 WHERE id = $1
