-- SPDX-License-Identifier: Apache-2.0
-- PostgreSQL's clock: what a delay counts from.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
