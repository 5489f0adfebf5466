-- SPDX-License-Identifier: Apache-2.0
-- Retries these jobs or makes them due, all or none: refused as a whole when one of them is. $2: completed ones, too.
-- params: int8[], bool
SELECT claimd.retry_many($1, $2)
