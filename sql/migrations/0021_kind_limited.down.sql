-- SPDX-License-Identifier: Apache-2.0
DROP INDEX kind_limited;
