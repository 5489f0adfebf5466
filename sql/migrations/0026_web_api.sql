-- SPDX-License-Identifier: Apache-2.0
-- claimd-web: requests with an Idempotency-Key. The functions that it may call are in sql/functions/web.sql.

-- One row per key of a caller, written in the transaction that does what the request asks for. `request`: SHA-256 of its method, path
-- and body; `answer`: what a repetition is answered.
CREATE TABLE web_key (
    who text NOT NULL,
    key text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    request bytea NOT NULL,
    answer text,
    CONSTRAINT web_key_pkey PRIMARY KEY (who, key)
);
CREATE INDEX web_key_at ON web_key (at);

-- ---- down ----
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA claimd FROM claimd_web;
DROP TABLE web_key;
