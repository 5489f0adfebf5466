/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers and writers of a read-write lock (lock.L11). A reader holds one of the slots of its key;
 * a writer holds all of them, and takes the gate first. While another client holds the gate, a
 * reader takes no slot: it waits in line at the gate, and releases the gate when it has its slot.
 * Exclusion depends only on the slots; the gate keeps the order. */
#include "base/clock.h"
#include "redlock/client/request.h"

static void go_on(struct request *r)
{
    if (!slots_ask(r)) {
        readers_leave_gate(r);
        request_end_one(r);
    }
}

static void on_gate(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct request *r = ctx;
    r->gate_wait = NULL;
    r->tries += tries;
    if (result == REDLOCK_OK) {
        r->gate = batch;
        go_on(r);
        return;
    }
    report_fill(r->client, report_at(r->reports, 0), result, r->tries, batch, 0, batch != NULL);
    part_decide(&r->parts[0], result);
    request_end_one(r);
}

/* Waits for the gate. Returns 0 or a negative errno. */
static int wait_at_gate(struct request *r, struct redlock_error *error)
{
    struct redlock_async_request asked = request_asks(r);
    const struct redlock_wait_options options = request_waits(request_deadline_us(r), on_gate, r);
    asked.keys = &r->keys[r->key_count];
    asked.count = 1;
    return redlock_async_wait(r->client->core, &asked, &options, &r->gate_wait, error);
}

static void on_looked(void *ctx, const struct redlock_holding *holdings)
{
    struct request *r = ctx;
    struct redlock_error error = {0};
    bool is_taken = false;
    for (size_t i = 0; i < r->client->settings.node_count; i++) {
        is_taken = is_taken || holdings[i].vote == REDLOCK_VOTE_REFUSED;
    }
    if (request_is_cancelled(r)) {
        part_fail(&r->parts[0], REDLOCK_CANCELLED, "");
    } else if (!is_taken) {
        go_on(r);
        return;
    } else if (r->asked.wait_ms == 0) {
        part_fail(&r->parts[0], REDLOCK_HELD, "a writer has it, or waits for it");
    } else {
        int code = wait_at_gate(r, &error);
        if (code == 0) {
            return;
        }
        request_refused(r, code, error.message);
    }
    request_end_one(r);
}

bool readers_ask(struct request *r)
{
    const struct redlock_async_key *gate = &r->keys[r->key_count];
    int code = redlock_async_inspect(r->client->core, gate->bytes, gate->len, on_looked, r);
    if (code != 0) {
        request_refused(r, code, "no memory to look at the gate");
    }
    return code == 0;
}

void readers_cancel(struct request *r)
{
    if (r->gate_wait != NULL) {
        redlock_wait_cancel(r->gate_wait);
    }
}

void readers_leave_gate(struct request *r)
{
    if (r->gate != NULL) {
        redlock_batch_release(TAKE(r->gate), 0);
    }
}
