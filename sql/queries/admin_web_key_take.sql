-- SPDX-License-Identifier: Apache-2.0
-- Takes the Idempotency-Key ($2) of a caller ($1) for the request ($3); no row: it is new. Index: web_key_pkey.
-- params: text, text, text
SELECT is_other, answer FROM claimd.web_key_take($1, $2, $3)
