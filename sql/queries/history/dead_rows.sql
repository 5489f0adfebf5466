-- SPDX-License-Identifier: Apache-2.0
-- Dead and live rows of `job`, according to the statistics.
SELECT n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables WHERE relid = 'claimd.job'::regclass
