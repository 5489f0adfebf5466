-- SPDX-License-Identifier: Apache-2.0
-- For the scheduler's session: makes every statement use an index, whatever the tables hold, so that one plan is good for
-- ever and a read costs no planning.
SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false),
       set_config('enable_bitmapscan', 'off', false), set_config('enable_hashjoin', 'off', false),
       set_config('enable_mergejoin', 'off', false), set_config('enable_material', 'off', false),
       set_config('jit', 'off', false)
