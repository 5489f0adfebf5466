-- SPDX-License-Identifier: Apache-2.0
-- Records an act before it begins: who, role, address, method, path, body.
-- params: text, text, text, text, text, text
INSERT INTO claimd.web_audit (who, role, address, method, path, body) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id
