-- SPDX-License-Identifier: Apache-2.0
-- Ends an upgrade; the version that programs must be built for from now on. Raises CL003 while an older one works.
SELECT claimd.finish_upgrade()
