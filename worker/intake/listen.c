/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/listen.h"

#include "base/clock.h"
#include "worker/worker.h"

#include <stdio.h>

bool listen_is_paused(const struct worker *w, const char *queue)
{
    for (size_t i = 0; i < w->listen.paused_count; i++) {
        if (strcmp(w->listen.paused[i], queue) == 0) {
            return true;
        }
    }
    return false;
}

size_t listen_place(const struct worker *w, const char *queue)
{
    for (size_t q = 0; q < w->servers.config->worker.queue_count; q++) {
        if (strcmp(w->servers.config->worker.queues[q], queue) == 0) {
            return q;
        }
    }
    return SIZE_MAX;
}

bool listen_serves(const struct worker *w, const char *queue)
{
    return listen_place(w, queue) != SIZE_MAX && !listen_is_paused(w, queue);
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
static enum status listen_to_sets(struct worker *w, enum hints_left left, struct err *err)
{
    size_t count = 0;
    size_t max = w->servers.config->worker.queue_count * (w->membership.kinds.served.count + 1);
    autofree struct hints_set *sets = calloc(max == 0 ? 1 : max, sizeof *sets);
    if (sets == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the sets of hints");
    }
    bool listens = w->standing.stage == WORKER_RUNNING && !w->standing.is_quiet &&
                   w->listen.is_told && w->membership.kinds.served.count > 0;
    for (size_t q = 0; listens && q < w->servers.config->worker.queue_count; q++) {
        const char *queue = w->servers.config->worker.queues[q];
        int weight = w->listen.weights[q];
        if (listen_is_paused(w, queue) || limits_is_shut(w, queue)) {
            continue;
        }
        add_set(&sets[count++], queue, weight, "");
        for (size_t k = 0; k < w->membership.kinds.served.count; k++) {
            add_set(&sets[count++], queue, weight, w->membership.kinds.served.names[k]);
        }
    }
    hints_popper_name(w->servers.popper, w->standing.worker_id);
    return hints_popper_listen(w->servers.popper, sets, count, left, err);
}

static void update(struct worker *w, enum hints_left left)
{
    struct err err = {0};
    if (w->servers.popper == NULL) {
        return; /* closed: this worker is ending */
    }
    if (listen_to_sets(w, left, &err) == STATUS_OK) {
        log_recovered("listen_recovered", &w->listen.complaint);
    } else if (complaint_due(&w->listen.complaint, clock_boot_us())) {
        log_error("listen_failed", LOG_TEXT("err", err.msg),
                  LOG_TEXT("action", "again with the next beat"));
    }
}

void listen_update(struct worker *w)
{
    update(w, HINTS_LEFT_WOKEN);
}

/* Hints that a blocked pop still brings from a queue that was shut are put back (fetch_take()). */
void listen_update_limits(struct worker *w)
{
    update(w, HINTS_LEFT_BLOCKED);
}

static bool are_other_paused(const struct worker *w, const struct worker_beat_reply *reply)
{
    for (size_t i = 0; i < reply->paused_count; i++) {
        if (!listen_is_paused(w, reply->paused_queues[i])) {
            return true;
        }
    }
    return reply->paused_count != w->listen.paused_count;
}

static int weight_in(const struct worker_beat_reply *reply, const char *queue)
{
    for (size_t i = 0; i < reply->weight_count; i++) {
        if (strcmp(reply->weights[i].queue, queue) == 0) {
            return reply->weights[i].weight;
        }
    }
    return 0;
}

/* True if a weight has changed. */
static bool take_weights(struct worker *w, const struct worker_beat_reply *reply)
{
    bool is_changed = false;
    w->in_hand.has_weights = reply->weight_count > 0;
    for (size_t q = 0; q < w->servers.config->worker.queue_count; q++) {
        int weight = weight_in(reply, w->servers.config->worker.queues[q]);
        is_changed = is_changed || weight != w->listen.weights[q];
        w->listen.weights[q] = weight;
    }
    return is_changed;
}

void listen_take(struct worker *w, const struct worker_beat_reply *reply)
{
    bool is_changed = take_weights(w, reply);
    is_changed = is_changed || !w->listen.is_told || are_other_paused(w, reply);
    if (!is_changed && w->listen.complaint.count == 0) {
        return;
    }
    w->listen.is_told = true;
    w->listen.paused_count = 0;
    for (size_t i = 0; i < reply->paused_count && i < ARRAY_COUNT(w->listen.paused); i++) {
        (void)snprintf(w->listen.paused[w->listen.paused_count++], sizeof w->listen.paused[0], "%s",
                       reply->paused_queues[i]);
    }
    w->due.listen = true;
}
