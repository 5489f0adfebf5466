-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION weigh_queue;
ALTER TABLE queue DROP COLUMN weight;
