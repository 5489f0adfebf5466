-- SPDX-License-Identifier: Apache-2.0
-- Saves marks of lanes: $4 where the lane has $5 (µs; −1 = no row yet). A rescue or a hand-back that lowered a mark meanwhile
-- wins. Returns the lanes that took it.
-- params: text[], int8[], int8[], int8[], int8[]
INSERT INTO claimd.lane AS l (queue, priority, share, low_water)
SELECT queue, priority::int2, share::int2, timestamptz 'epoch' + mark_us * interval '1 microsecond'
  FROM unnest($1, $2, $3, $4, $5) AS t(queue, priority, share, mark_us, saved_us)
 WHERE saved_us < 0 OR EXISTS (SELECT FROM claimd.lane o
                                WHERE o.queue = t.queue AND o.priority = t.priority AND o.share = t.share
                                  AND o.low_water = timestamptz 'epoch' + t.saved_us * interval '1 microsecond')
 ORDER BY queue, priority, share
    ON CONFLICT (queue, priority, share) DO UPDATE SET low_water = EXCLUDED.low_water
 WHERE l.low_water < EXCLUDED.low_water
RETURNING queue, 64 * priority + share AS lane, low_water
