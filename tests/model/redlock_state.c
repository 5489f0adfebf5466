/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock_state.h"

#include <string.h>

static void sort_nodes(struct state *s)
{
    for (size_t i = 1; i < NODES; i++) {
        for (size_t k = i; k > 0 && memcmp(&s->nodes[k - 1], &s->nodes[k], sizeof s->nodes[0]) > 0;
             k--) {
            struct node other = s->nodes[k];
            s->nodes[k] = s->nodes[k - 1];
            s->nodes[k - 1] = other;
        }
    }
}

static void drop_idle_talk(const struct attempt *a, struct node *n, size_t attempt)
{
    struct talk *t = &n->talks[attempt];
    if (a->stage != ASKING && t->set != NOT_SENT) { /* late votes */
        t->set = t->set == ASKED || t->set == ASKED_IN_VAIN ? ASKED_IN_VAIN : DONE;
    }
    if (a->stage == OVER && t->set == DONE) {
        t->set = NOT_SENT;
    }
    bool may_own = n->owner == attempt + 1 || t->set == ASKED_IN_VAIN || t->heal != 0;
    if (a->stage == OVER && !may_own) {
        t->release = 0;
    }
    if (t->extend == ASKED_IN_VAIN && !may_own) {
        t->extend = NOT_SENT;
    }
}

static void drop_what_is_idle(struct state *s)
{
    for (size_t i = 0; i < ATTEMPTS; i++) {
        for (size_t node = 0; node < NODES; node++) {
            drop_idle_talk(&s->attempts[i], &s->nodes[node], i);
        }
    }
}

/* The two clients are interchangeable: keeps the smaller of the two states. */
static void take_the_lesser(struct state *s)
{
    struct state other = *s;
    other.attempts[0] = s->attempts[1];
    other.attempts[1] = s->attempts[0];
    for (size_t i = 0; i < NODES; i++) {
        uint8_t owner = s->nodes[i].owner;
        other.nodes[i].owner = owner == 0 ? 0 : (uint8_t)(ATTEMPTS + 1 - owner);
        other.nodes[i].talks[0] = s->nodes[i].talks[1];
        other.nodes[i].talks[1] = s->nodes[i].talks[0];
    }
    sort_nodes(&other);
    if (memcmp(&other, s, sizeof other) < 0) {
        *s = other;
    }
}

void state_normalize(struct state *s)
{
    drop_what_is_idle(s);
    sort_nodes(s);
    take_the_lesser(s);
}
