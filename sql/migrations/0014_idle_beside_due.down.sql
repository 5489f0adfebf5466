-- SPDX-License-Identifier: Apache-2.0
ALTER TABLE worker
    DROP COLUMN spare_least,
    DROP COLUMN spare_since,
    DROP COLUMN ready_oldest;
