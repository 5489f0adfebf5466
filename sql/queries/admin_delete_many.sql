-- SPDX-License-Identifier: Apache-2.0
-- Deletes these jobs, all or none: refused as a whole if one of them is refused.
-- params: int8[]
SELECT count(claimd.delete_job(id)) FROM unnest($1) AS u(id)
