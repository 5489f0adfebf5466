-- SPDX-License-Identifier: Apache-2.0
-- With --programs: half of all jobs are of kinds whose handlers are programs, p_… of one that serves, and a quarter of these
-- o_… of one that is started for each job. Another half of every part in each thousand.
CREATE OR REPLACE FUNCTION soak.by(kind text, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN kind NOT IN ('s_plain', 's_flaky') OR (n + n / 1000) % 20 > 10 THEN kind
                WHEN (n + n / 1000) % 4 = 0 THEN 'o' || substr(kind, 2)
                ELSE 'p' || substr(kind, 2) END
$$;
