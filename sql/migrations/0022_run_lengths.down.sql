-- SPDX-License-Identifier: Apache-2.0
DROP VIEW run_lengths;
DROP TABLE run_length;
