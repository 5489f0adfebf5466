-- SPDX-License-Identifier: Apache-2.0
-- Retries these jobs or makes them due, all or none: refused as a whole if one of them is refused. $2: even completed ones.
-- params: int8[], bool
SELECT claimd.retry_many($1, $2)
