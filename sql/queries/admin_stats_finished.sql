-- SPDX-License-Identifier: Apache-2.0
-- What ended in the last minutes. Reads today's part of the history (and yesterday's shortly after midnight).
SELECT m AS minutes,
       count(*) FILTER (WHERE h.state = 'completed') AS completed,
       count(*) FILTER (WHERE h.state = 'discarded') AS discarded,
       count(*) FILTER (WHERE h.state = 'cancelled') AS cancelled,
       round(count(h.id) / (m * 60.0), 1) AS per_s
  FROM unnest(ARRAY[1, 5, 15]) AS m
  LEFT JOIN claimd.job_history h ON h.finalized_at > statement_timestamp() - m * interval '1 minute'
                                AND h.finalized_at > statement_timestamp() - interval '15 minutes'
 GROUP BY m
 ORDER BY m
