-- SPDX-License-Identifier: Apache-2.0
-- Of a job that isn't there: may it have been completed, and not kept?
-- params: int8
SELECT claimd.may_be_gone($1)
