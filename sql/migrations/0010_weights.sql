-- SPDX-License-Identifier: Apache-2.0
-- Weights of queues: what a worker takes of each when it serves several. The guide: docs/guide/fairness.md.

ALTER TABLE queue
    ADD COLUMN weight integer, -- NULL: counts as 1 where another queue of the same worker has one
    ADD CONSTRAINT queue_weight_range CHECK (weight BETWEEN 1 AND 100);

-- ---- down ----
ALTER TABLE queue DROP COLUMN weight;
