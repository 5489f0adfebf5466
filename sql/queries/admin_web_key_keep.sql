-- SPDX-License-Identifier: Apache-2.0
-- Stores the answer ($3) to the request with the Idempotency-Key ($2) of a caller ($1). Index: web_key_pkey.
-- params: text, text, text
SELECT claimd.web_key_keep($1, $2, $3)
