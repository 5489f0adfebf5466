-- SPDX-License-Identifier: Apache-2.0
-- Makes the days of the history ahead; returns how many were missing. Waits for nobody's readers.
-- params: int4
SELECT claimd.ensure_days($1) AS made
