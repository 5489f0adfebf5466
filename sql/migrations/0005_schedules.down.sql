-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION fire_schedules, fire_schedule, schedule_set, schedule_pause, schedule_resume, schedule_delete, schedule_run,
    schedule_next, schedule_enqueue, schedule_lock;
DROP TABLE schedule_fire, schedule;
