-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION open_state, job_waits;
ALTER TABLE job DROP COLUMN flags, DROP COLUMN version, DROP COLUMN unique_key, DROP COLUMN backoff, DROP COLUMN exclusive_key,
                DROP COLUMN share_key, DROP COLUMN second_key,
                DROP COLUMN grace, DROP COLUMN owner, DROP CONSTRAINT job_share_range;
REVOKE INSERT (share) ON job FROM claimd_admin, claimd_producer;
UPDATE job SET share = 1 + (share - 1) % 63 WHERE share > 63;
ALTER TABLE job ADD CONSTRAINT job_share_range CHECK (share BETWEEN 0 AND 63);
ALTER TABLE job_history DROP COLUMN flags, DROP COLUMN version, DROP COLUMN unique_key, DROP COLUMN backoff, DROP COLUMN retried_at,
                        DROP COLUMN exclusive_key, DROP COLUMN share_key, DROP COLUMN second_key,
                        DROP COLUMN grace, DROP COLUMN owner;
ALTER TABLE kind DROP COLUMN is_announced, DROP COLUMN limited, DROP COLUMN grace, DROP COLUMN keep_log, DROP COLUMN set_by_hand, DROP COLUMN of_plugin, DROP COLUMN paused, DROP COLUMN paused_at, DROP COLUMN paused_by, DROP COLUMN backoff;
ALTER TABLE queue DROP COLUMN max_running, DROP COLUMN limited, DROP COLUMN rate, DROP COLUMN max_open,
                  DROP COLUMN paused_at, DROP COLUMN paused_by;
DROP INDEX job_live_cancel;
ALTER TABLE job_live DROP COLUMN percent, DROP COLUMN changed_at, DROP CONSTRAINT job_live_progress_size,
                     DROP CONSTRAINT job_live_checkpoint_size;
DROP FUNCTION why_unknown, edits, backoff_is_valid, why_no_grace, why_no_backoff, share_of;
DROP TRIGGER program_joins ON worker;
DROP TRIGGER program_joins ON scheduler;
DROP FUNCTION program_joins, require_program, finish_upgrade, may_notify, set_owners, check_batch_owner, check_job_owners, check_owner,
    own_roles, acting_role;
ALTER TABLE worker DROP COLUMN built_for, DROP COLUMN asked;
ALTER TABLE scheduler DROP COLUMN built_for;
ALTER TABLE cluster DROP COLUMN oldest_program, DROP COLUMN schema_part, DROP COLUMN owners;
