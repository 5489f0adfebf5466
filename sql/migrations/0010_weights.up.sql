-- SPDX-License-Identifier: Apache-2.0
-- Weights of queues: what a worker takes of each when it serves several. The guide: docs/guide/fairness.md.

ALTER TABLE queue
    ADD COLUMN weight integer, -- NULL: counts as 1 where another queue of the same worker has one
    ADD CONSTRAINT queue_weight_range CHECK (weight BETWEEN 1 AND 100);

-- NULL: no weight any more. Workers hear it with their next beat; those of an older release go on by score.
CREATE FUNCTION weigh_queue(queue text, weight integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := COALESCE(why_no_queue(queue),
                           CASE WHEN weight NOT BETWEEN 1 AND 100 THEN 'weight: must be 1 to 100, or NULL for no weight' END);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    INSERT INTO queue AS q (name, weight) VALUES (weigh_queue.queue, weigh_queue.weight)
        ON CONFLICT (name) DO UPDATE SET weight = excluded.weight;
END $$;

REVOKE ALL ON FUNCTION weigh_queue FROM PUBLIC;
GRANT EXECUTE ON FUNCTION weigh_queue TO claimd_admin;
