-- SPDX-License-Identifier: Apache-2.0
-- Cancels these jobs, all or none: refused as a whole if one of them is refused.
-- params: int8[]
SELECT count(claimd.cancel(id)) FROM unnest($1) AS u(id)
