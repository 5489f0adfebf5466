-- SPDX-License-Identifier: Apache-2.0
-- PostgreSQL's clock, which delays count from.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
