-- SPDX-License-Identifier: Apache-2.0
-- Flags of the jobs that job/claim.sql leaves to job/claim_limited.sql, besides the jobs of limited queues and kinds.
{flag.key|place|asked|deadline}
