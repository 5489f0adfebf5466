-- SPDX-License-Identifier: Apache-2.0
-- Each claim asks which kinds have a limit: none, as a rule, of a hundred.
CREATE INDEX kind_limited ON kind (name) WHERE limited;

-- ---- down ----
DROP INDEX kind_limited;
