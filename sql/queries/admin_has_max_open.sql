-- SPDX-License-Identifier: Apache-2.0
-- Does a queue refuse jobs when it is full? Rows of COPY would not be counted.
SELECT EXISTS (SELECT FROM claimd.queue WHERE max_open IS NOT NULL)
