-- SPDX-License-Identifier: Apache-2.0
-- The jobs with the ids $1 that run under the fences $2. A fence belongs to one claim of one job, so the two arrays need no pairing.
-- $2 is sorted, so that width_bucket finds a fence in it by binary search: there is no join, and hence no plan that could go wrong.
-- (SELECT $1) hides the ids from the planner, which would otherwise examine each of 500 and take longer than a claim of ten.
id = ANY ((SELECT $1)::bigint[]) AND state = 'running' AND fence = $2[width_bucket(fence, $2)]
