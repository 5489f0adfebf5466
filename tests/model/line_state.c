/* SPDX-License-Identifier: Apache-2.0 */
#include "line_state.h"

#include <assert.h>
#include <string.h>

#define CMD_MASK ((1U << CMD_BITS) - 1U)

static unsigned cmd_at(const struct line_link *l, size_t client, size_t at)
{
    return (unsigned)l->cmds[client] >> (at * CMD_BITS) & CMD_MASK;
}

size_t link_count(const struct line_link *l, size_t client)
{
    size_t count = 0;
    while (count < CMDS_MAX && cmd_at(l, client, count) != CMD_NONE) {
        count++;
    }
    return count;
}

enum line_cmd link_next(const struct line_link *l, size_t client)
{
    return (enum line_cmd)cmd_at(l, client, 0);
}

bool link_has(const struct line_link *l, size_t client, enum line_cmd cmd)
{
    for (size_t i = 0; i < CMDS_MAX; i++) {
        if (cmd_at(l, client, i) == cmd) {
            return true;
        }
    }
    return false;
}

void link_push(struct line_link *l, size_t client, unsigned cmd)
{
    size_t count = link_count(l, client);
    assert(count < CMDS_MAX);
    l->cmds[client] = (uint16_t)(l->cmds[client] | cmd << (count * CMD_BITS));
}

void link_pop(struct line_link *l, size_t client)
{
    l->cmds[client] = (uint16_t)(l->cmds[client] >> CMD_BITS);
}

void link_forget(struct line_link *l, size_t client)
{
    struct line_link old = *l;
    l->cmds[client] = 0;
    for (; link_next(&old, client) != CMD_NONE; link_pop(&old, client)) {
        enum line_cmd cmd = link_next(&old, client);
        link_push(l, client,
                  cmd == CMD_SET     ? CMD_SET_IN_VAIN
                  : cmd == CMD_ENTER ? CMD_ENTER_IN_VAIN
                                     : cmd);
    }
}

void link_drop(struct line_link *l, size_t client, enum line_cmd cmd)
{
    struct line_link old = *l;
    l->cmds[client] = 0;
    for (; link_next(&old, client) != CMD_NONE; link_pop(&old, client)) {
        if (link_next(&old, client) != cmd) {
            link_push(l, client, link_next(&old, client));
        }
    }
}

static bool is_leaving(const struct line_link *l, size_t client)
{
    return link_has(l, client, CMD_LEAVE) || link_has(l, client, CMD_LEAVE_GAP);
}

static void drop_heard(struct line_place *p, size_t client, uint8_t phase, bool keeps_answers)
{
    struct line_heard *h = &p->link.heard[client];
    bool is_gone = !line_is_in_line(phase);
    if (is_gone || (phase == PHASE_WAITING && !keeps_answers)) {
        h->answer = OWNER_NOBODY;
    } else if (phase == PHASE_TRYING && h->answer != OWNER_NOBODY &&
               h->answer != owner_of(client)) {
        h->answer = OWNER_FREE; /* a refusal: whose key it is makes no difference */
    }
    if (is_gone) {
        bool is_orphan = phase == PHASE_DONE && p->node.owner == owner_of(client) &&
                         !is_leaving(&p->link, client);
        h->is_offered = h->is_offered && is_orphan;
        h->is_late = h->is_kept = false;
    }
}

static void drop_session(struct line_place *p, size_t client, uint8_t phase)
{
    bool is_over = phase == PHASE_IDLE || phase == PHASE_HOLDING || phase == PHASE_DONE;
    bool may_join = (p->node.line & client_bit(client)) != 0 || link_count(&p->link, client) > 0;
    if (is_over && !may_join) {
        p->node.alive &= (uint8_t)~client_bit(client);
    }
}

static void drop_of_node(struct line_node *n, bool may_expire)
{
    n->turns = TURNS_NONE; /* gaps are limited by the budget */
    n->foreign = FOREIGN_UNSEEN;
    n->has_any = n->has_any || n->line == 0;
    n->is_lease = n->owner != OWNER_NOBODY && (n->is_lease || !may_expire);
}

static void drop_before(struct line_state *s, size_t clients)
{
    for (size_t b = 1; b < clients; b++) {
        for (size_t a = 0; a < b; a++) {
            if (!line_is_in_line(s->phase[a]) || !line_is_in_line(s->phase[b])) {
                s->before &= (uint8_t)~before_bit(a, b);
            }
        }
    }
}

/* All bytes were zeroed at first, including padding, so equal places have equal bytes. */
static bool is_in_order(const void *place, const void *next)
{
    return memcmp(place, next, sizeof(struct line_place)) <= 0;
}

static void sort_places(struct line_state *s, size_t nodes)
{
    for (size_t i = 1; i < nodes; i++) {
        for (size_t k = i; k > 0; k--) {
            struct line_place *a = &s->places[k - 1];
            if (is_in_order(a, a + 1)) {
                break;
            }
            struct line_place other = a[0];
            a[0] = a[1];
            a[1] = other;
        }
    }
}

void line_normalize(struct line_state *s, size_t nodes, size_t clients, bool keeps_answers)
{
    for (size_t i = 0; i < nodes; i++) {
        struct line_place *p = &s->places[i];
        for (size_t c = 0; c < clients; c++) {
            drop_heard(p, c, s->phase[c], keeps_answers);
            drop_session(p, c, s->phase[c]);
        }
        drop_of_node(&p->node, (s->budget & MAY_EXPIRE) != 0);
    }
    for (size_t c = 0; c < clients; c++) {
        if (s->phase[c] != PHASE_WAITING && s->phase[c] != PHASE_ASKING) {
            s->kept_long &= (uint8_t)~client_bit(c);
        }
    }
    drop_before(s, clients);
    sort_places(s, nodes);
}
