-- SPDX-License-Identifier: Apache-2.0
-- Enqueueing, edits, schedules and batches refuse an empty tag: no filter would find it. A plain INSERT does not.
CREATE OR REPLACE FUNCTION why_no_labels(tags text[], metadata jsonb) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(tags) > 1
            THEN 'tags: must be a list of texts'
            WHEN array_position(tags, NULL) IS NOT NULL
            THEN 'tags: must be a list of texts, without NULL'
            WHEN '' = ANY (tags)
            THEN 'tags: must be a list of texts, none of them empty'
            WHEN jsonb_typeof(metadata) <> 'object'
            THEN 'metadata: must be a JSON object' END;

-- ---- down ----
CREATE OR REPLACE FUNCTION why_no_labels(tags text[], metadata jsonb) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(tags) > 1
            THEN 'tags: must be a list of texts'
            WHEN array_position(tags, NULL) IS NOT NULL
            THEN 'tags: must be a list of texts, without NULL'
            WHEN jsonb_typeof(metadata) <> 'object'
            THEN 'metadata: must be a JSON object' END;
