-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION mend_schedules, schedules_beyond, schedule_should_wait_until, schedule_enqueue_unique, schedule_offset, fire_schedules, fire_schedule, schedule_set, schedule_pause, schedule_resume, schedule_delete, schedule_run,
    schedule_next, schedule_enqueue, schedule_lock;
DROP TABLE schedule_fire, schedule;
