-- SPDX-License-Identifier: Apache-2.0
-- Of jobs that job/claim.sql leaves to job/claim_limited.sql, besides those of limited queues and kinds.
{flag.key|place|asked|deadline}
