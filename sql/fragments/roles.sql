-- SPDX-License-Identifier: Apache-2.0
-- All roles of claimd but the owner of its schema, claimd_scheduler: from whom each function is revoked before it is granted.
claimd_admin, claimd_producer, claimd_reader, claimd_worker
