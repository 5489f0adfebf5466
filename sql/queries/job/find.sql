-- SPDX-License-Identifier: Apache-2.0
-- Which of these jobs there are: not ended, nor deleted, nor made up. By primary key.
-- params: int8[]
SELECT id, queue, kind, priority, ready_at FROM claimd.job WHERE id = ANY ($1)
