-- SPDX-License-Identifier: Apache-2.0
-- Creates the days of the history ahead; returns how many were missing. Does not wait for readers.
-- params: int4
SELECT claimd.ensure_days($1) AS made
