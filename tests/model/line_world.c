/* SPDX-License-Identifier: Apache-2.0 */
#include "line_world.h"

#include "redlock/rules/line_rules.h"
#include "redlock/rules/tally.h"

#include <string.h>

void world_first(const struct line_world *w, struct line_state *ret)
{
    *ret = (struct line_state){.budget = (uint16_t)w->budget};
    if (w->is_held) {
        size_t holder = w->clients - 1;
        ret->phase[holder] = PHASE_HOLDING;
        for (size_t i = 0; i < w->nodes; i++) {
            (void)node_set(&ret->places[i].node, holder);
        }
    }
}

size_t world_owned(const struct line_world *w, const struct line_state *s, uint8_t owner)
{
    size_t count = 0;
    for (size_t i = 0; i < w->nodes; i++) {
        count += s->places[i].node.owner == owner;
    }
    return count;
}

/* ---- nodes ---- */

static void tell(struct line_place *p, const struct node_reply *r)
{
    for (size_t c = 0; c < LINE_CLIENTS_MAX; c++) {
        if ((r->offered & client_bit(c)) != 0) {
            p->link.heard[c].is_offered = true;
        }
    }
}

void world_run(const struct line_world *w, struct line_state *s, size_t node, size_t client)
{
    struct line_place *p = &s->places[node];
    unsigned cmd = link_next(&p->link, client);
    struct node_reply r = {0};
    link_pop(&p->link, client);
    if (cmd == CMD_SET || cmd == CMD_SET_IN_VAIN) {
        r = node_set(&p->node, client);
    } else if (cmd == CMD_ENTER || cmd == CMD_ENTER_IN_VAIN) {
        r = node_enter(&p->node, client, w->takes_any_free_key);
    } else if (cmd == CMD_LEAVE || cmd == CMD_LEAVE_GAP) {
        r = node_leave(&p->node, client, cmd == CMD_LEAVE_GAP, false);
    } else {
        r = node_yield(&p->node, client, (uint8_t)(cmd - CMD_YIELD));
    }
    if (cmd == CMD_SET || cmd == CMD_ENTER) {
        p->link.heard[client].answer = r.answer & 7U;
    }
    if (r.answer == owner_of(client)) { /* the offer is used up */
        p->link.heard[client].is_offered = false;
    }
    tell(p, &r);
}

void world_refresh(const struct line_world *w, struct line_state *s, size_t node, size_t client)
{
    struct line_place *p = &s->places[node];
    (void)w;
    struct node_reply r = node_refresh(&p->node, client);
    r.offered |= r.code == 0 ? client_bit(client) : 0; /* its reply means the same */
    tell(p, &r);
}

/* ---- clients ---- */

static size_t votes_of(const struct line_world *w, const struct line_state *s, size_t client)
{
    size_t count = 0;
    for (size_t i = 0; i < w->nodes; i++) {
        count += s->places[i].link.heard[client].answer == owner_of(client);
    }
    return count;
}

static size_t answers_of(const struct line_world *w, const struct line_state *s, size_t client)
{
    size_t count = 0;
    for (size_t i = 0; i < w->nodes; i++) {
        count += s->places[i].link.heard[client].answer != OWNER_NOBODY;
    }
    return count;
}

static void forget_round(const struct line_world *w, struct line_state *s, size_t client)
{
    for (size_t i = 0; i < w->nodes; i++) {
        link_forget(&s->places[i].link, client);
    }
}

static void send_round(const struct line_world *w, struct line_state *s, size_t client,
                       enum line_cmd cmd)
{
    forget_round(w, s, client);
    for (size_t i = 0; i < w->nodes; i++) {
        struct line_heard *h = &s->places[i].link.heard[client];
        bool stays = w->counts_earlier_rounds && h->answer == owner_of(client);
        h->answer = stays ? h->answer : OWNER_NOBODY;
        h->is_late = w->hears_late && h->is_offered;
        h->is_offered = h->is_kept = false;
        link_push(&s->places[i].link, client, cmd);
    }
}

static bool is_in_most_lines(const struct line_world *w, const struct line_state *s, size_t client)
{
    size_t count = 0;
    for (size_t i = 0; i < w->nodes; i++) {
        const struct line_node *n = &s->places[i].node;
        count += (n->line & client_bit(client)) != 0 || n->owner == owner_of(client);
    }
    return line_is_in_line(s->phase[client]) && count >= tally_quorum(w->nodes);
}

void world_begin(const struct line_world *w, struct line_state *s, size_t client)
{
    for (size_t a = 0; a < client && !w->has_no_order; a++) {
        if (is_in_most_lines(w, s, a)) {
            s->before |= before_bit(a, client);
        }
    }
    s->phase[client] = w->tries_first ? PHASE_TRYING : PHASE_ASKING;
    send_round(w, s, client, w->tries_first ? CMD_SET : CMD_ENTER);
}

void world_ask(const struct line_world *w, struct line_state *s, size_t client)
{
    s->phase[client] = PHASE_ASKING;
    send_round(w, s, client, CMD_ENTER);
}

void world_leave(const struct line_world *w, struct line_state *s, size_t client, unsigned gaps)
{
    forget_round(w, s, client);
    s->phase[client] = PHASE_DONE;
    for (size_t i = 0; i < w->nodes; i++) {
        bool has_gap = (gaps >> i & 1U) != 0;
        link_push(&s->places[i].link, client, has_gap ? CMD_LEAVE_GAP : CMD_LEAVE);
    }
}

static void hold(const struct line_world *w, struct line_state *s, size_t client)
{
    forget_round(w, s, client);
    s->phase[client] = PHASE_HOLDING;
}

void world_decline(const struct line_world *w, struct line_state *s, size_t node, size_t client)
{
    (void)w;
    s->places[node].link.heard[client].is_offered = false;
    link_push(&s->places[node].link, client, CMD_LEAVE);
}

bool world_takes_offers(const struct line_world *w, struct line_state *s, size_t client)
{
    if (!w->counts_offers || !world_is_to_confirm(w, s, client)) {
        return false;
    }
    hold(w, s, client);
    return true;
}

/* ---- the decisions ---- */

bool world_is_answered(const struct line_world *w, const struct line_state *s, size_t client,
                       size_t silent)
{
    for (size_t i = 0; i < w->nodes; i++) {
        if (i != silent && s->places[i].link.heard[client].answer == OWNER_NOBODY) {
            return false;
        }
    }
    return true;
}

bool world_may_decide(const struct line_world *w, const struct line_state *s, size_t client)
{
    size_t votes = votes_of(w, s, client);
    size_t refused = answers_of(w, s, client) - votes;
    bool is_trying = s->phase[client] == PHASE_TRYING;
    return votes >= tally_quorum(w->nodes) || world_is_answered(w, s, client, NO_NODE) ||
           (is_trying && refused > w->nodes - tally_quorum(w->nodes));
}

static void write_token(const struct line_world *w, size_t client, char token[])
{
    size_t score = w->yields_to_the_last ? LINE_CLIENTS_MAX - client : client + 1;
    memset(token, (int)('a' + client), REDLOCK_TOKEN_LEN);
    token[REDLOCK_TOKEN_LEN] = '\0';
    line_write_score(token, 1700000000000000 + (int64_t)score);
}

static uint8_t owner_with(const struct line_world *w, const struct line_view *view)
{
    for (size_t c = 0; c < w->clients; c++) {
        char other[REDLOCK_TOKEN_LEN + 1];
        write_token(w, c, other);
        if (memcmp(other, view->value, sizeof other) == 0) {
            return owner_of(c);
        }
    }
    return OWNER_NOBODY;
}

static void see(const struct line_world *w, const struct line_state *s, size_t client,
                size_t silent, struct line_view views[])
{
    for (size_t i = 0; i < w->nodes; i++) {
        uint8_t answer = s->places[i].link.heard[client].answer;
        views[i] = (struct line_view){.owner = i == silent || answer == OWNER_NOBODY ? LINE_SILENT
                                               : answer == OWNER_FREE                ? LINE_FREE
                                               : answer == OWNER_FOREIGN             ? LINE_FOREIGN
                                               : answer == owner_of(client)          ? LINE_MINE
                                                                                     : LINE_WAITER};
        if (views[i].owner == LINE_WAITER) {
            write_token(w, (size_t)(answer - OWNER_FIRST), views[i].value);
            views[i].len = REDLOCK_TOKEN_LEN;
        }
    }
}

static struct line_decision ask_rules(const struct line_world *w, const struct line_state *s,
                                      size_t client, bool has_kept_long,
                                      const struct line_view views[])
{
    char token[REDLOCK_TOKEN_LEN + 1];
    write_token(w, client, token);
    if (w->first_yields_too) {
        line_write_score(token, LINE_SCORE_MAX);
    }
    struct line_decision d = line_decide(views, w->nodes, token, has_kept_long);
    bool is_kept = w->yields_to_nobody;
    if (d.step == LINE_YIELD && w->yields_to_quorums_only) {
        size_t count = 0;
        for (size_t i = 0; i < w->nodes; i++) {
            count += s->places[i].link.heard[client].answer == owner_with(w, d.to);
        }
        is_kept = count < tally_quorum(w->nodes);
    }
    if (d.step == LINE_YIELD && is_kept) {
        d = (struct line_decision){.step = LINE_LOOK};
    }
    return d;
}

static void keep_votes(const struct line_world *w, struct line_state *s, size_t client,
                       const struct line_view views[])
{
    for (size_t i = 0; i < w->nodes; i++) {
        s->places[i].link.heard[client].is_kept = views[i].owner == LINE_MINE;
        if (views[i].owner == LINE_FOREIGN) {
            s->kept_long |= client_bit(client);
        }
    }
}

static void yield_votes(const struct line_world *w, struct line_state *s, size_t client,
                        const struct line_view views[], const struct line_view *to)
{
    uint8_t owner = to != NULL ? owner_with(w, to) : OWNER_NOBODY;
    for (size_t i = 0; i < w->nodes; i++) {
        if (views[i].owner == LINE_MINE) {
            link_push(&s->places[i].link, client, CMD_YIELD + (unsigned)owner);
        }
    }
}

void world_decide(const struct line_world *w, struct line_state *s, size_t client, size_t silent,
                  bool has_kept_long)
{
    struct line_view views[LINE_NODES_MAX];
    see(w, s, client, silent, views);
    bool was_trying = s->phase[client] == PHASE_TRYING;
    struct line_decision d = ask_rules(w, s, client, has_kept_long, views);
    if (was_trying && d.step != LINE_CONFIRM) {
        world_ask(w, s, client);
        return;
    }
    s->kept_long &= (uint8_t)~client_bit(client);
    if (d.step == LINE_CONFIRM) {
        hold(w, s, client);
        return;
    }
    forget_round(w, s, client);
    s->phase[client] = PHASE_WAITING;
    if (d.step == LINE_LOOK) {
        keep_votes(w, s, client, views);
    } else if (d.step == LINE_YIELD || d.step == LINE_GIVE_BACK) {
        yield_votes(w, s, client, views, d.to);
    }
}

static unsigned kept_of(const struct line_world *w, const struct line_state *s, size_t client)
{
    unsigned kept = 0;
    for (size_t i = 0; i < w->nodes && i < LINE_NODES_MAX; i++) {
        kept |= (unsigned)s->places[i].link.heard[client].is_kept << i;
    }
    return kept;
}

static unsigned offers_of(const struct line_world *w, const struct line_state *s, size_t client,
                          bool with_late)
{
    unsigned offered = 0;
    for (size_t i = 0; i < w->nodes; i++) {
        const struct line_heard *h = &s->places[i].link.heard[client];
        offered |= (unsigned)(h->is_offered || (with_late && h->is_late)) << i;
    }
    return offered;
}

unsigned world_known(const struct line_world *w, const struct line_state *s, size_t client)
{
    return offers_of(w, s, client, true) | kept_of(w, s, client);
}

bool world_is_to_confirm(const struct line_world *w, const struct line_state *s, size_t client)
{
    unsigned offered = offers_of(w, s, client, w->confirms_late_offers);
    return line_is_to_confirm(offered, kept_of(w, s, client), w->nodes);
}
