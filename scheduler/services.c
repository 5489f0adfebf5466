/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/services.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "scheduler/batches.h"
#include "scheduler/cron.h"
#include "scheduler/feeder.h"
#include "scheduler/rescuer.h"
#include "scheduler/survey.h"

#include <assert.h>

/* Services start in this order and stop in reverse. */
static const struct service *const table[] = {
    &feeder_service,  /* due jobs become hints */
    &rescuer_service, /* jobs of dead workers become available again */
    &cron_service,    /* ticks of schedules become jobs */
    &batches_service, /* jobs and batches that wait for jobs to end go on */
    &maps_service,    /* jobs of maps become due, and their ends are recorded */
    &rates_service,   /* jobs that a rate, a map or two keys allow by now become hints */
    &days_service,    /* today and tomorrow get a partition */
    &history_service, /* partitions are created and dropped, `job` is vacuumed */
    &survey_service,  /* the gauges of all queues */
};

static_assert(ARRAY_COUNT(table) <= SERVICES_MAX, "a place for each");

void services_start(struct services *s)
{
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        struct err err = {0};
        if (table[i]->start(&s->env, &s->running[i], &err) != STATUS_OK) {
            log_error(table[i]->failed, LOG_TEXT("err", err.msg));
        }
    }
}

void services_polled(struct services *s, const struct cluster_view *view)
{
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        if (s->running[i] != NULL && table[i]->polled != NULL) {
            table[i]->polled(s->running[i], view);
        }
    }
}

void services_wake(struct services *s)
{
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        if (s->running[i] != NULL && table[i]->wake != NULL) {
            table[i]->wake(s->running[i]);
        }
    }
}

void services_reload(struct services *s, const struct config *config)
{
    s->env.config = config;
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        if (s->running[i] != NULL && table[i]->reload != NULL) {
            table[i]->reload(s->running[i], config);
        }
    }
}

void services_stop(struct services *s)
{
    for (size_t i = ARRAY_COUNT(table); i-- > 0;) {
        void *self = TAKE(s->running[i]);
        if (self != NULL) {
            table[i]->stop(self);
        }
    }
}
