-- SPDX-License-Identifier: Apache-2.0
-- Makes a session that plans each statement once (pg_options.plans_once) plan the rest of its transaction again, for the tables as
-- they are now; sent before a statement that reads more than single rows.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'on', true),
       set_config('enable_bitmapscan', 'on', true), set_config('enable_hashjoin', 'on', true),
       set_config('enable_mergejoin', 'on', true), set_config('enable_material', 'on', true),
       set_config('enable_memoize', 'on', true)
