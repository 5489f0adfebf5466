/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/room.h"

#include "base/clock.h"
#include "worker/intake/intake.h"

#define PAUSE_FIRST_US (50 * US_PER_MS)
#define PAUSE_MAX_US (2 * US_PER_S)
#define CLAIM_TIMEOUTS 2 /* × postgres.timeout_ms: the segment in flight and the claim's own */

void room_configure(struct intake *in)
{
    in->room.limits = (struct capacity_limits){
        .claim_ahead_max = (size_t)in->env.servers->config->worker.claim_ahead,
        .batch_max = (size_t)in->env.servers->config->worker.batch_max};
}

struct capacity_facts room_facts(const struct intake *in, int64_t now_us)
{
    const size_t *n = in->env.active->count;
    struct capacity_facts f = {.coming =
                                   n[ACTIVE_LOCKING] + n[ACTIVE_CLAIMING] + n[ACTIVE_FETCHING],
                               .ready = n[ACTIVE_READY],
                               .finishing = n[ACTIVE_FINISHING]};
    in->env.count_runners(in->env.ctx, now_us, &f);
    f.mean_run_us = now_us < in->room.ahead_pause_until_us ? 0 : in->env.lengths->mean_us;
    f.short_us = lengths_max_us(in->env.lengths);
    return f;
}

static enum lengths_ahead ahead_of_queues(struct intake *in, int64_t now_us)
{
    return lengths_ahead(in->env.lengths, in->env.servers->config->worker.queue_count, now_us);
}

size_t room_places_left(const struct intake *in, const struct capacity_facts *f)
{
    return f->runners > in->env.active->placed ? f->runners - in->env.active->placed : 0;
}

/* Also checked for the hints of a pop that was in flight when the state changed. Without a live
 * row, a claim would be made under an id whose heartbeats no longer count. */
bool room_may_take(const struct intake *in)
{
    return in->env.standing->stage == WORKER_RUNNING && in->env.standing->is_registered &&
           !in->env.standing->is_quiet;
}

static bool may_fetch(const struct intake *in, int64_t now_us)
{
    return room_may_take(in) && now_us >= in->room.pause_until_us &&
           pg_is_up(in->env.servers->pg) && redlock_async_has_quorum(in->env.servers->lock);
}

size_t room_places(const struct intake *in)
{
    const struct capacity_facts f = room_facts(in, clock_boot_us());
    return room_places_left(in, &f);
}

size_t room_spare(const struct intake *in)
{
    int64_t now = clock_boot_us();
    if (!may_fetch(in, now) || !in->listen.is_told) {
        return 0;
    }
    struct capacity_facts f = room_facts(in, now);
    size_t taken = f.coming + f.ready;
    return f.idle > taken ? f.idle - taken : 0;
}

size_t room_left(struct intake *in)
{
    int64_t now = clock_boot_us();
    if (!may_fetch(in, now)) {
        return 0;
    }
    struct capacity_facts f = room_facts(in, now);
    struct capacity_limits l = in->room.limits;
    if (in->limits.ahead_max < l.claim_ahead_max) {
        l.claim_ahead_max = in->limits.ahead_max;
    }
    enum lengths_ahead ahead = ahead_of_queues(in, now);
    f.mean_run_us = ahead == LENGTHS_NONE ? 0 : f.mean_run_us;
    size_t want = capacity_want(&f, &l);
    size_t places = room_places_left(in, &f);
    if (ahead == LENGTHS_SOME && places < want) {
        want = places; /* the hints may be of any queue */
    }
    return limits_want(in, &f, want);
}

void room_poke(struct intake *in)
{
    if (in->env.servers->popper != NULL && in->env.standing->stage == WORKER_RUNNING) {
        hints_popper_poke(in->env.servers->popper);
    }
}

int64_t room_claim_bound_us(const struct intake *in)
{
    return CLAIM_TIMEOUTS * in->env.servers->config->postgres.timeout_us;
}

static void note_setback(struct intake *in, int64_t now_us)
{
    struct room *f = &in->room;
    if (f->setbacks_since_us == 0 || now_us - f->setback_us > room_claim_bound_us(in)) {
        f->setbacks_since_us = now_us; /* the first one, or the first after a long time */
    }
    f->setback_us = now_us;
}

/* A quorum or PostgreSQL is missing, so the whole worker backs off, not each job (lock.A14). */
void room_pause(struct intake *in)
{
    int64_t twice = in->room.pause_us * 2;
    int64_t next = twice > PAUSE_FIRST_US ? twice : PAUSE_FIRST_US;
    in->room.pause_us = next < PAUSE_MAX_US ? next : PAUSE_MAX_US;
    int64_t now = clock_boot_us();
    in->room.pause_until_us = now + rand_below(in->env.rand, in->room.pause_us);
    note_setback(in, now);
}
