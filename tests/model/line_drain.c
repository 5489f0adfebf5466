/* SPDX-License-Identifier: Apache-2.0 */
#include "line_drain.h"

#include <string.h>

#define SERVED_MAX ((size_t)8 << 20)

bool drain_init(struct drain *d, const struct line_world *world, enum drain_order order)
{
    *d = (struct drain){.world = world, .order = order};
    size_t size = offsetof(struct line_state, places) + world->nodes * sizeof(struct line_place);
    return search_init(&d->served, size, SERVED_MAX);
}

void drain_release(struct drain *d)
{
    search_release(&d->served);
}

static size_t client_at(const struct drain *d, size_t node, size_t at)
{
    size_t clients = d->world->clients;
    return d->order == DRAIN_ALIKE     ? at
           : d->order == DRAIN_ROTATED ? (node + at) % clients
                                       : clients - 1 - at;
}

static bool run_nodes(const struct drain *d, struct line_state *s)
{
    bool has_moved = false;
    for (size_t i = 0; i < d->world->nodes; i++) {
        for (size_t at = 0; at < d->world->clients; at++) {
            size_t c = client_at(d, i, at);
            for (; link_next(&s->places[i].link, c) != CMD_NONE; has_moved = true) {
                world_run(d->world, s, i, c);
            }
        }
    }
    return has_moved;
}

static bool decline_offers(const struct drain *d, struct line_state *s)
{
    bool has_moved = false;
    for (size_t i = 0; i < d->world->nodes; i++) {
        for (size_t c = 0; c < d->world->clients; c++) {
            if (s->places[i].link.heard[c].is_offered && s->phase[c] == PHASE_DONE) {
                world_decline(d->world, s, i, c);
                has_moved = true;
            }
        }
    }
    return has_moved;
}

static bool move_clients(const struct drain *d, struct line_state *s)
{
    bool has_moved = false;
    for (size_t c = 0; c < d->world->clients; c++) {
        bool is_asking = s->phase[c] == PHASE_ASKING || s->phase[c] == PHASE_TRYING;
        if (is_asking && world_may_decide(d->world, s, c)) {
            world_decide(d->world, s, c, NO_NODE, (s->kept_long & client_bit(c)) != 0);
            has_moved = true;
        } else if (s->phase[c] == PHASE_WAITING && world_is_to_confirm(d->world, s, c)) {
            world_ask(d->world, s, c);
            has_moved = true;
        }
    }
    return has_moved;
}

/* Called when nothing is in flight: holders release, and waiters with some votes ask. */
static bool move_the_slow(const struct drain *d, struct line_state *s)
{
    bool has_moved = false;
    for (size_t c = 0; c < d->world->clients; c++) {
        if (s->phase[c] == PHASE_HOLDING) {
            world_leave(d->world, s, c, 0);
            has_moved = true;
        } else if (s->phase[c] == PHASE_WAITING && world_known(d->world, s, c) != 0) {
            world_ask(d->world, s, c);
            has_moved = true;
        }
    }
    return has_moved;
}

static void refresh_all(const struct drain *d, struct line_state *s)
{
    for (size_t i = 0; i < d->world->nodes; i++) {
        for (size_t at = 0; at < d->world->clients; at++) {
            size_t c = client_at(d, i, at);
            if (s->phase[c] == PHASE_WAITING && !d->world->never_refreshes) {
                world_refresh(d->world, s, i, c);
            }
        }
    }
}

/* Time passes: everything whose owner is gone expires. */
static void end_the_rest(const struct drain *d, struct line_state *s)
{
    for (size_t i = 0; i < d->world->nodes; i++) {
        struct line_node *n = &s->places[i].node;
        n->is_away = false;
        bool has_owner_gone = n->owner == OWNER_FOREIGN;
        for (size_t c = 0; c < d->world->clients; c++) {
            if (s->phase[c] == PHASE_DEAD) {
                n->alive &= (uint8_t)~client_bit(c);
            }
            bool is_gone = s->phase[c] == PHASE_DEAD || s->phase[c] == PHASE_DONE;
            has_owner_gone = has_owner_gone || (n->owner == owner_of(c) && is_gone);
        }
        if (has_owner_gone) {
            node_expire(n);
        }
    }
}

/* Lets all idle clients begin, and refreshes all, at once. */
static void begin_and_refresh(const struct drain *d, struct line_state *s)
{
    for (size_t c = 0; c < d->world->clients; c++) {
        if (s->phase[c] == PHASE_IDLE) {
            world_begin(d->world, s, c);
        }
    }
    refresh_all(d, s);
}

static void step(const struct drain *d, struct line_state *s)
{
    bool has_moved = run_nodes(d, s);
    has_moved = decline_offers(d, s) || has_moved;
    has_moved = move_clients(d, s) || has_moved;
    if (!has_moved) {
        end_the_rest(d, s);
        if (!move_the_slow(d, s)) {
            begin_and_refresh(d, s);
        }
    }
    line_normalize(s, d->world->nodes, d->world->clients, d->world->counts_earlier_rounds);
}

static bool is_over(const struct line_world *w, const struct line_state *s)
{
    for (size_t c = 0; c < w->clients; c++) {
        if (s->phase[c] != PHASE_DONE && s->phase[c] != PHASE_DEAD) {
            return false;
        }
    }
    return true;
}

/* True if this run has reached the state before. */
static bool is_circle(const struct drain *d, size_t began_at, const struct line_state *s)
{
    for (size_t i = began_at; i < d->served.count; i++) {
        if (memcmp(search_state(&d->served, i), s, d->served.state_size) == 0) {
            return true;
        }
    }
    return false;
}

/* A run that does not serve all clients stays in `served`, but the search ends then. */
bool drain_serves_all(struct drain *d, const struct line_state *s)
{
    struct line_state now = *s;
    size_t began_at = d->served.count;
    now.budget = 0;
    now.before = 0;
    while (!is_over(d->world, &now)) {
        step(d, &now);
        if (!search_visit(&d->served, &now, 0)) {
            return d->served.is_too_big || !is_circle(d, began_at, &now);
        }
    }
    return true;
}
