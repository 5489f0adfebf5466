-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION complete_in_tx(bigint, bigint, jsonb);
