/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/listen.h"

#include "base/clock.h"
#include "worker/intake/intake.h"

#include <stdio.h>

bool listen_is_paused(const struct intake *in, const char *queue)
{
    for (size_t i = 0; i < in->listen.paused_count; i++) {
        if (strcmp(in->listen.paused[i], queue) == 0) {
            return true;
        }
    }
    return false;
}

size_t listen_place(const struct intake *in, const char *queue)
{
    for (size_t q = 0; q < in->env.servers->config->worker.queue_count; q++) {
        if (strcmp(in->env.servers->config->worker.queues[q], queue) == 0) {
            return q;
        }
    }
    return SIZE_MAX;
}

bool listen_serves(const struct intake *in, const char *queue)
{
    return listen_place(in, queue) != SIZE_MAX && !listen_is_paused(in, queue);
}

static void add_set(struct hints_set *set, const char *queue, int weight, const char *kind)
{
    set->weight = weight;
    (void)snprintf(set->queue, sizeof set->queue, "%s", queue);
    (void)snprintf(set->kind, sizeof set->kind, "%s", kind);
}

/* Listens to a queue's own set, and to one set for each kind that is served. The scheduler uses the
 * latter if not every worker of the queue serves the kind (INTERFACES rule 2). Which of the two it
 * uses may change at any time, so the worker listens to both. */
static enum status listen_to_sets(struct intake *in, enum hints_left left, struct err *err)
{
    size_t count = 0;
    size_t max = in->env.servers->config->worker.queue_count * (in->env.kinds->served.count + 1);
    autofree struct hints_set *sets = calloc(max == 0 ? 1 : max, sizeof *sets);
    if (sets == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the sets of hints");
    }
    bool listens = in->env.standing->stage == WORKER_RUNNING && !in->env.standing->is_quiet &&
                   in->listen.is_told && in->env.kinds->served.count > 0;
    for (size_t q = 0; listens && q < in->env.servers->config->worker.queue_count; q++) {
        const char *queue = in->env.servers->config->worker.queues[q];
        int weight = in->listen.weights[q];
        if (listen_is_paused(in, queue) || limits_is_shut(&in->limits, queue)) {
            continue;
        }
        add_set(&sets[count++], queue, weight, "");
        for (size_t k = 0; k < in->env.kinds->served.count; k++) {
            add_set(&sets[count++], queue, weight, in->env.kinds->served.names[k]);
        }
    }
    hints_popper_name(in->env.servers->popper, in->env.standing->worker_id);
    return hints_popper_listen(in->env.servers->popper, sets, count, left, err);
}

static void update(struct intake *in, enum hints_left left)
{
    struct err err = {0};
    if (in->env.servers->popper == NULL) {
        return; /* closed: this worker is ending */
    }
    if (listen_to_sets(in, left, &err) == STATUS_OK) {
        log_recovered("listen_recovered", &in->listen.complaint);
    } else if (complaint_due(&in->listen.complaint, clock_boot_us())) {
        log_error("listen_failed", LOG_TEXT("err", err.msg),
                  LOG_TEXT("action", "trying again with the next heartbeat"));
    }
}

void listen_update(struct intake *in)
{
    update(in, HINTS_LEFT_WOKEN);
}

/* Hints that a blocked pop still brings from a queue that was shut are put back (fetch_take()). */
void listen_update_limits(struct intake *in)
{
    update(in, HINTS_LEFT_BLOCKED);
}

static bool are_other_paused(const struct intake *in, const struct worker_heartbeat_reply *reply)
{
    for (size_t i = 0; i < reply->paused_count; i++) {
        if (!listen_is_paused(in, reply->paused_queues[i])) {
            return true;
        }
    }
    return reply->paused_count != in->listen.paused_count;
}

static int weight_in(const struct worker_heartbeat_reply *reply, const char *queue)
{
    for (size_t i = 0; i < reply->weight_count; i++) {
        if (strcmp(reply->weights[i].queue, queue) == 0) {
            return reply->weights[i].weight;
        }
    }
    return 0;
}

/* True if a weight has changed. */
static bool take_weights(struct intake *in, const struct worker_heartbeat_reply *reply)
{
    bool is_changed = false;
    in->env.active->has_weights = reply->weight_count > 0;
    for (size_t q = 0; q < in->env.servers->config->worker.queue_count; q++) {
        int weight = weight_in(reply, in->env.servers->config->worker.queues[q]);
        is_changed = is_changed || weight != in->listen.weights[q];
        in->listen.weights[q] = weight;
    }
    return is_changed;
}

void listen_take(struct intake *in, const struct worker_heartbeat_reply *reply)
{
    bool is_changed = take_weights(in, reply);
    is_changed = is_changed || !in->listen.is_told || are_other_paused(in, reply);
    if (!is_changed && in->listen.complaint.count == 0) {
        return;
    }
    in->listen.is_told = true;
    in->listen.paused_count = 0;
    for (size_t i = 0; i < reply->paused_count && i < ARRAY_COUNT(in->listen.paused); i++) {
        (void)snprintf(in->listen.paused[in->listen.paused_count++], sizeof in->listen.paused[0],
                       "%s", reply->paused_queues[i]);
    }
    in->env.due->listen = true;
}
