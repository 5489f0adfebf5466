-- SPDX-License-Identifier: Apache-2.0
-- Makes the next jobs of maps due; how many that were. Index: job_feed, job_exclusive.
SELECT claimd.feed_maps()
