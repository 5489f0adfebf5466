-- SPDX-License-Identifier: Apache-2.0
-- Finishes an upgrade; returns the schema version that programs must be built for from now on. Raises CL003 while an older one runs.
SELECT claimd.finish_upgrade()
