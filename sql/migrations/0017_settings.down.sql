-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION why_not_known, set_kind, limit_kind, change_kind, resume_kind, pause_kind, forget_kind, need_kind, why_no_kind, look_at_kind, take_rooms, take_room, limit_open,
    limit_rate, limit_queue, weigh_queue, resume_all_queues, pause_all_queues, resume_queue, pause_queue, set_queue, set_rules, change_queue,
    why_no_setting, rate_of;
DROP TYPE starts_per;
DROP TABLE room;
