-- SPDX-License-Identifier: Apache-2.0
-- Inserts many jobs in one transaction, with columns that a producer may set. Each row has its scheduled_at, because COPY knows no
-- default for a column that only some rows set.
COPY claimd.job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, tags, metadata, backoff) FROM STDIN
