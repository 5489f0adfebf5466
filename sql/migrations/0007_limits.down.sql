-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION claim_limited, next_free, free_leaked, free_ended, next_of_keys, take_key_place, key_places, free_slots, take_room,
    limit_open, limit_rate, limit_queue, limit_key, exclusive_flag;
DROP TABLE room, bucket, slot, key_limit, exclusive;
