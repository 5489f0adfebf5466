-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION claim_limited, next_free, free_leaked, free_ended, forget_waiting, next_waiting, keep_waiting, next_of_keys, key_places,
    key_tokens, await_bucket, free_slots, limit_key_rate, limit_key;
DROP TABLE key_waiting, bucket, slot, key_limit, exclusive;
