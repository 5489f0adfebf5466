-- SPDX-License-Identifier: Apache-2.0
-- Retries these jobs, all or none: refused as a whole when one of them is. $2: completed ones, too.
-- params: int8[], bool
SELECT count(claimd.retry(id, $2)) FROM unnest($1) AS u(id)
