-- SPDX-License-Identifier: Apache-2.0
-- Whether any queue has max_open: such a queue would not count rows inserted by COPY.
SELECT EXISTS (SELECT FROM claimd.queue WHERE max_open IS NOT NULL)
