-- SPDX-License-Identifier: Apache-2.0
-- For one survey: it reads a table that others work on, so it takes one process and no compiler.
SELECT set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true)
