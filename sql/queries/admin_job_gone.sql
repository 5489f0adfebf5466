-- SPDX-License-Identifier: Apache-2.0
-- Whether a job that does not exist may have completed without being kept.
-- params: int8
SELECT claimd.may_be_gone($1)
