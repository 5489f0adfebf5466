-- SPDX-License-Identifier: Apache-2.0
-- What was done through claimd-web, the newest first; $1: below this id. `status`: the HTTP status of its answer. Index: web_audit_pkey.
-- params: before int8 id
-- shows: id number, at time, who text, role text, address text, method text, path text, body text long, status number
-- tables: audit
SELECT id, {utc at} AS at, who, role, address, method, path, body, status
  FROM claimd.web_audit
 WHERE $1 IS NULL OR id < $1
 ORDER BY id DESC
 LIMIT 100
