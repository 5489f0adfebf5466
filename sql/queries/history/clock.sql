-- SPDX-License-Identifier: Apache-2.0
-- PostgreSQL's clock, its reading at the leader's last look, and for how many more µs nothing is deleted.
SELECT now() AS at, sweep_at, sweep_hold_us FROM claimd.cluster
