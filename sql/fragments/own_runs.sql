-- SPDX-License-Identifier: Apache-2.0
-- Of jobs with the ids $1: those that run under the fences $2. A fence belongs to one claim of one job, so the two arrays need no pairing; $2
-- rises, so width_bucket's binary search finds a fence in it: no join, hence no plan that could go wrong. (SELECT $1) hides the ids from
-- the planner: it looks at each of 500 otherwise, which takes longer than a claim of ten.
id = ANY ((SELECT $1)::bigint[]) AND state = 'running' AND fence = $2[width_bucket(fence, $2)]
