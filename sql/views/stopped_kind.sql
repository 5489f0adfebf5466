-- SPDX-License-Identifier: Apache-2.0
-- Kinds whose jobs do not start now, and why: "kind NAME …". The statements that feed, serve or explain jobs use this view.
CREATE OR REPLACE VIEW stopped_kind AS
SELECT name, 'is paused' || COALESCE(format(' (by %s at %s UTC)', paused_by,
                                            to_char(paused_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')), '') AS why
  FROM kind
 WHERE paused;

REVOKE ALL ON stopped_kind FROM PUBLIC, {roles};
GRANT SELECT ON stopped_kind TO claimd_admin, claimd_reader, claimd_worker;
