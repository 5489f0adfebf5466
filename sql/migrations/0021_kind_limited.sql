-- SPDX-License-Identifier: Apache-2.0
-- Each claim looks up the kinds with a limit: usually none of a hundred.
CREATE INDEX kind_limited ON kind (name) WHERE limited;

-- ---- down ----
DROP INDEX kind_limited;
