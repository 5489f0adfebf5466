-- SPDX-License-Identifier: Apache-2.0
ALTER TABLE job
    ADD CONSTRAINT job_kind_name CHECK (kind ~ '^[a-z][a-z0-9_]*$' AND octet_length(kind) <= 64),
    ADD CONSTRAINT job_queue_name CHECK (queue ~ '^[a-z][a-z0-9_.-]*$' AND octet_length(queue) <= 64),
    ADD CONSTRAINT job_priority_range CHECK (priority BETWEEN 0 AND 9),
    ADD CONSTRAINT job_scheduled_at_range CHECK (scheduled_at BETWEEN '0001-01-01 00:00:00+00' AND '2286-01-01 00:00:00+00'),
    ADD CONSTRAINT job_args_size CHECK (pg_column_size(args) <= 2000 OR octet_length(args::text) <= 1048576),
    ADD CONSTRAINT job_metadata_size CHECK (pg_column_size(metadata) <= 2000 OR octet_length(metadata::text) <= 65536),
    ADD CONSTRAINT job_tags_size CHECK (pg_column_size(tags) <= 8192),
    ADD CONSTRAINT job_max_attempts_range CHECK (max_attempts >= 1),
    ADD CONSTRAINT job_timeout_range CHECK (timeout > interval '0' AND timeout <= interval '366 days'),
    ADD CONSTRAINT job_unique_key_size CHECK (octet_length(unique_key) BETWEEN 1 AND 512),
    ADD CONSTRAINT job_backoff_valid CHECK (backoff_is_valid(backoff)),
    ADD CONSTRAINT job_exclusive_key_form
        CHECK (exclusive_key IS NULL OR (octet_length(exclusive_key) BETWEEN 1 AND 512 AND flags & 2 <> 0)),
    ADD CONSTRAINT job_share_key_form
        CHECK (share_key IS NULL OR (octet_length(share_key) BETWEEN 1 AND 512 AND share > 0)),
    ADD CONSTRAINT job_share_range CHECK (share BETWEEN 0 AND 16383);
DROP TRIGGER job_checked ON job;
DROP TRIGGER job_checked_again ON job;
DROP TRIGGER job_sizes_checked ON job;
DROP FUNCTION job_checked, rule_text, broken_rule, text_within, mark_too_long;
UPDATE job SET flags = flags & ~1024 WHERE flags & 1024 <> 0;

DROP TRIGGER job_again ON job_history;
CREATE TRIGGER job_again AFTER INSERT ON job FOR EACH ROW WHEN (NEW.flags & 25 <> 0 AND NEW.generation > 0)
    EXECUTE FUNCTION job_again();

REVOKE SELECT (hungry) ON cluster FROM claimd_producer;
CREATE OR REPLACE FUNCTION job_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT hungry FROM cluster) THEN
        PERFORM pg_notify('claimd', '');
    END IF;
    RETURN NULL;
END $$;
