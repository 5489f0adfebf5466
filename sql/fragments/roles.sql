-- SPDX-License-Identifier: Apache-2.0
-- All roles of claimd except claimd_scheduler, the owner of its schema. Each function is revoked from these before it is granted.
claimd_admin, claimd_producer, claimd_reader, claimd_worker
