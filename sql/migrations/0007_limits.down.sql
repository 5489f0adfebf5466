-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION claim_limited, next_of_rates, next_free, free_leaked, free_ended, next_of_keys, take_key_place, key_places, key_tokens,
    free_slots, take_room, limit_open, limit_rate, limit_queue, limit_key_rate, limit_key, why_no_rate, exclusive_flag;
DROP TABLE room, bucket, slot, key_limit, exclusive;
