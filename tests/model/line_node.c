/* SPDX-License-Identifier: Apache-2.0 */
#include "line_node.h"

static bool is_own(const struct line_node *n, size_t client)
{
    return n->owner == owner_of(client);
}

static void leave_line(struct line_node *n, size_t client)
{
    n->line &= (uint8_t)~client_bit(client);
}

static void join_line(struct line_node *n, size_t client)
{
    n->line |= client_bit(client);
}

static void keep_session(struct line_node *n, size_t client)
{
    n->alive |= client_bit(client);
    n->has_any = true;
}

/* Returns the first client in line whose session lives, as an owner; removes those before it. */
static uint8_t head(struct line_node *n)
{
    for (size_t i = 0; i < LINE_CLIENTS_MAX; i++) {
        if ((n->line & n->alive & client_bit(i)) != 0) {
            return owner_of(i);
        }
        leave_line(n, i);
    }
    return OWNER_NOBODY;
}

static void offer(struct line_node *n, uint8_t to, struct node_reply *r)
{
    size_t client = (size_t)(to - OWNER_FIRST);
    n->owner = to;
    n->is_lease = false;
    leave_line(n, client);
    r->offered |= client_bit(client);
}

void node_expire(struct line_node *n)
{
    n->owner = OWNER_NOBODY;
    n->is_lease = false;
}

static void take(struct line_node *n, size_t client)
{
    n->owner = owner_of(client);
    n->is_lease = true;
}

struct node_reply node_set(struct line_node *n, size_t client)
{
    struct node_reply r = {.answer = n->owner, .rank = -1};
    if (n->owner == OWNER_NOBODY) {
        take(n, client);
        r.answer = n->owner;
    }
    return r;
}

static void confirm(struct line_node *n, size_t client, struct node_reply *r)
{
    take(n, client);
    leave_line(n, client);
    r->answer = n->owner;
    r->gap = n->turns == TURNS_OVER ? GAP_DUE : n->foreign != FOREIGN_UNSEEN ? GAP_NEAR : GAP_NONE;
}

static void begin_turns(struct line_node *n)
{
    if (n->foreign != FOREIGN_HAD_IT) {
        n->turns = TURNS_RUN;
        n->foreign = n->foreign == FOREIGN_HAS_IT ? FOREIGN_HAD_IT : FOREIGN_UNSEEN;
    }
}

struct node_reply node_enter(struct line_node *n, size_t client, bool takes_any)
{
    struct node_reply r = {.rank = -1};
    if (is_own(n, client)) {
        confirm(n, client, &r);
        return r;
    }
    keep_session(n, client);
    join_line(n, client);
    if (n->owner != OWNER_NOBODY) {
        n->turns = n->turns == TURNS_NONE ? TURNS_RUN : n->turns;
        if (n->owner == OWNER_FOREIGN) {
            n->foreign = FOREIGN_HAS_IT;
            n->is_away = false;
        }
    } else if (!n->is_away) {
        uint8_t first = takes_any ? owner_of(client) : head(n);
        begin_turns(n);
        if (first == owner_of(client)) {
            confirm(n, client, &r);
            return r;
        }
        offer(n, first, &r);
    }
    r.answer = n->owner == OWNER_NOBODY ? OWNER_FREE : n->owner;
    r.rank = (int8_t)__builtin_popcount(n->line & (client_bit(client) - 1U));
    return r;
}

struct node_reply node_leave(struct line_node *n, size_t client, bool has_gap, bool tells)
{
    struct node_reply r = {.was_mine = is_own(n, client)};
    if (n->has_any) {
        leave_line(n, client);
    }
    if (!r.was_mine) {
        return r;
    }
    uint8_t first = n->has_any ? head(n) : OWNER_NOBODY;
    if (first == OWNER_NOBODY || has_gap) {
        node_expire(n);
        n->is_away = n->is_away || has_gap;
        n->foreign = has_gap && n->foreign != FOREIGN_UNSEEN ? FOREIGN_INVITED : n->foreign;
        r.told = first != OWNER_NOBODY ? client_bit((size_t)(first - OWNER_FIRST)) : 0;
        return r;
    }
    offer(n, first, &r);
    uint8_t second = tells ? head(n) : OWNER_NOBODY;
    r.told = second != OWNER_NOBODY ? client_bit((size_t)(second - OWNER_FIRST)) : 0;
    return r;
}

struct node_reply node_yield(struct line_node *n, size_t client, uint8_t to)
{
    struct node_reply r = {.code = 0};
    if (!is_own(n, client)) {
        return r;
    }
    keep_session(n, client);
    join_line(n, client);
    if (to != OWNER_NOBODY && (n->line & n->alive & client_bit((size_t)(to - OWNER_FIRST))) != 0) {
        offer(n, to, &r);
        r.code = 1;
        return r;
    }
    node_expire(n);
    r.code = -1;
    return r;
}

struct node_reply node_refresh(struct line_node *n, size_t client)
{
    struct node_reply r = {.code = -1};
    keep_session(n, client);
    if (is_own(n, client)) {
        r.code = 0;
        return r;
    }
    join_line(n, client);
    bool is_offer = n->owner != OWNER_NOBODY && !n->is_lease;
    if (n->owner == OWNER_NOBODY && !n->is_away) {
        offer(n, head(n), &r);
        is_offer = true;
    }
    r.code = is_own(n, client) ? 0 : is_offer ? 1 : -1;
    return r;
}
