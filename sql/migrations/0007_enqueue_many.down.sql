-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION enqueue_many(jsonb), refuse_requests(jsonb), request_keys();
DROP TYPE job_request;
