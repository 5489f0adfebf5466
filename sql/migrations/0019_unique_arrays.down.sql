-- SPDX-License-Identifier: Apache-2.0
CREATE OR REPLACE FUNCTION enqueue_many_unique(jobs jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    ids bigint[] := array_fill(NULL::bigint, ARRAY[jsonb_array_length(jobs)]);
    wanted record;
    holder text;
BEGIN
    PERFORM refuse_requests(jobs);
    FOR wanted IN SELECT e.ordinality AS n, request_of(e.value) AS r FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e
                   ORDER BY request_key(request_of(e.value)) COLLATE "C" NULLS FIRST, e.ordinality LOOP
        ids[wanted.n] := (enqueue_request(wanted.r)).id;
    END LOOP;
    RETURN QUERY SELECT unnest(ids);
EXCEPTION WHEN SQLSTATE 'CL004' THEN
    GET STACKED DIAGNOSTICS holder = PG_EXCEPTION_DETAIL;
    RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder, MESSAGE = format('jobs[%s].%s', wanted.n - 1, SQLERRM);
END $$;
