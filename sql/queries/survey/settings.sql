-- SPDX-License-Identifier: Apache-2.0
-- For one survey: it reads a table that others use at the same time, so it runs in one process and without JIT.
SELECT set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true)
