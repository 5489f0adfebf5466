-- SPDX-License-Identifier: Apache-2.0
-- Makes the next jobs of maps due and returns how many. Index: job_feed, job_exclusive.
SELECT claimd.feed_maps()
