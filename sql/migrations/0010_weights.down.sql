-- SPDX-License-Identifier: Apache-2.0
ALTER TABLE queue DROP COLUMN weight;
