-- SPDX-License-Identifier: Apache-2.0
-- Elements with keys are looked at closely only when something is wrong, as the others are: a block with an exception handler per
-- field took twice as long as all the rest.
CREATE OR REPLACE FUNCTION enqueue_many_unique(jobs jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    ids bigint[] := array_fill(NULL::bigint, ARRAY[jsonb_array_length(jobs)]);
    wanted record;
    holder text;
BEGIN
    IF EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e WHERE jsonb_typeof(e) <> 'object' OR e - known <> '{}') THEN
        PERFORM refuse_requests(jobs);
    END IF;
    FOR wanted IN SELECT t.n, t.r
                    FROM (SELECT e.ordinality AS n, request_of(e.value) AS r
                            FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e
                          OFFSET 0) AS t
                   ORDER BY request_key(t.r) COLLATE "C" NULLS FIRST, t.n LOOP
        ids[wanted.n] := (enqueue_request(wanted.r)).id;
    END LOOP;
    RETURN QUERY SELECT unnest(ids);
EXCEPTION
    WHEN SQLSTATE 'CL004' THEN
        GET STACKED DIAGNOSTICS holder = PG_EXCEPTION_DETAIL;
        RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder, MESSAGE = format('jobs[%s].%s', wanted.n - 1, SQLERRM);
    WHEN SQLSTATE 'CL002' OR data_exception OR integrity_constraint_violation THEN
        PERFORM refuse_requests(jobs);
        RAISE;
END $$;
