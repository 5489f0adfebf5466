-- SPDX-License-Identifier: Apache-2.0
-- Deletes what is older than 90 days from the audit.
SELECT claimd.web_audit_trim()
