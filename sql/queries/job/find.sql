-- SPDX-License-Identifier: Apache-2.0
-- Which of these jobs exist: they have not ended, and were neither deleted nor made up. By primary key.
-- params: int8[]
SELECT id, queue, kind, priority, ready_at FROM claimd.job WHERE id = ANY ($1)
