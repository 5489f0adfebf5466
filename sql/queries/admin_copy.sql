-- SPDX-License-Identifier: Apache-2.0
-- Many jobs in one transaction, in the columns that a producer may set. scheduled_at comes with each row: COPY knows no default
-- for a column that some rows give.
COPY claimd.job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, tags, metadata, backoff) FROM STDIN
