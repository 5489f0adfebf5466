-- SPDX-License-Identifier: Apache-2.0
-- With --programs, half of all jobs have kinds whose handlers are programs: p_… are served by a program that stays, and a quarter of them,
-- o_…, by one that is started for each job. In each thousand another half of every part is chosen.
CREATE OR REPLACE FUNCTION soak.by(kind text, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN kind NOT IN ('s_plain', 's_flaky') OR (n + n / 1000) % 20 > 10 THEN kind
                WHEN (n + n / 1000) % 4 = 0 THEN 'o' || substr(kind, 2)
                ELSE 'p' || substr(kind, 2) END
$$;
