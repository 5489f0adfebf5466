-- SPDX-License-Identifier: Apache-2.0
CREATE OR REPLACE FUNCTION why_no_labels(tags text[], metadata jsonb) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(tags) > 1
            THEN 'tags: must be a list of texts'
            WHEN array_position(tags, NULL) IS NOT NULL
            THEN 'tags: must be a list of texts, without NULL'
            WHEN jsonb_typeof(metadata) <> 'object'
            THEN 'metadata: must be a JSON object' END;
