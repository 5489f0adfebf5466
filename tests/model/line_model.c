/* SPDX-License-Identifier: Apache-2.0 */
#include "line_model.h"

#include "base/cleanup.h"
#include "line_drain.h"
#include "redlock/rules/tally.h"

#include <stdio.h>
#include <string.h>

#define EVENT_MAP(X)                                             \
    X(FIRST, "")                                                 \
    X(RUN_SET, "runs the SET of")                                \
    X(RUN_ENTER, "runs the enter of")                            \
    X(RUN_LEAVE, "runs the leave of")                            \
    X(RUN_YIELD, "runs the yield of")                            \
    X(DECLINE, "'s offer came too late for")                     \
    X(LOSE_MESSAGE, "'s offer is not heard by")                  \
    X(LOSE_LEAVE, "never gets the leave of")                     \
    X(LOSE_LINE, "loses its line")                               \
    X(LOSE_SESSIONS, "loses all sessions")                       \
    X(EXPIRE, ": the key ends")                                  \
    X(STAY, ": the line stays away no longer")                   \
    X(FOREIGN_TAKES, ": a foreign client takes the key")         \
    X(FOREIGN_LEAVES, ": the foreign client gives the key back") \
    X(CUT, "'s answer is not waited for by")                     \
    X(BEGIN, "(all): begins:")                                   \
    X(DECIDE, "(all): has heard enough:")                        \
    X(DECIDE_LATE, "(all): has kept votes long enough:")         \
    X(ASK, "(all): asks again:")                                 \
    X(TAKE_OFFERS, "(all): counts its offers:")                  \
    X(REFRESH, "runs a refresh of")                              \
    X(RELEASE, "(all): releases:")                               \
    X(RELEASE_GAP, "(all): releases, with a gap:")               \
    X(GIVE_UP, "(all): gives up:")                               \
    X(DIE, "(all): dies:")                                       \
    X(SESSION_ENDS, "(all): the sessions end of")

enum event {
#define X(name, text) EVENT_##name,
    EVENT_MAP(X)
#undef X
};

struct model {
    const struct line_world *world;
    struct line_result *result;
    struct search search;
    struct drain drains[DRAIN_ORDERS];
    size_t violated_at;
};

/* ---- the set of states, and the checks in each ---- */

static bool has_two_holders(const struct model *m, const struct line_state *s)
{
    size_t holders = world_owned(m->world, s, OWNER_FOREIGN) >= tally_quorum(m->world->nodes);
    for (size_t c = 0; c < m->world->clients; c++) {
        holders += s->phase[c] == PHASE_HOLDING;
    }
    return holders > 1;
}

static bool has_passed_another(const struct model *m, const struct line_state *s)
{
    for (size_t b = 1; b < m->world->clients; b++) {
        for (size_t a = 0; a < b && s->phase[b] == PHASE_HOLDING; a++) {
            if ((s->before & before_bit(a, b)) != 0 && line_is_in_line(s->phase[a])) {
                return true;
            }
        }
    }
    return false;
}

static const char *find_violation(struct model *m, const struct line_state *s)
{
    static const char *const orders[] = {
        "somebody is never served (all nodes alike)",
        "somebody is never served (each node begins with another client)",
        "somebody is never served (the last client first)",
    };
    if (has_two_holders(m, s)) {
        return "two holders";
    }
    for (size_t i = 0; i < ARRAY_COUNT(m->drains); i++) {
        if (!drain_serves_all(&m->drains[i], s)) {
            return orders[i];
        }
    }
    return NULL;
}

static void visit(struct model *m, const struct line_state *next, enum event event, size_t client,
                  size_t node)
{
    struct line_state s = *next;
    const char *what = has_passed_another(m, &s) ? "who came later was served before" : NULL;
    line_normalize(&s, m->world->nodes, m->world->clients, m->world->counts_earlier_rounds);
    uint32_t label = (uint32_t)event << 16U | (uint32_t)client << 8U | (uint32_t)node;
    bool is_new = search_visit(&m->search, &s, label);
    if (m->result->what != NULL || !is_new) {
        return;
    }
    m->result->what = what != NULL ? what : find_violation(m, &s);
    m->violated_at = m->search.count - 1;
}

/* ---- all possible next steps ---- */

static bool may(const struct line_state *s, enum line_budget what)
{
    return (s->budget & (unsigned)what) != 0;
}

static struct line_state spend(const struct line_state *s, enum line_budget what)
{
    struct line_state next = *s;
    next.budget = (uint16_t)(next.budget & ~(unsigned)what);
    return next;
}

static enum event event_of(enum line_cmd cmd)
{
    return cmd <= CMD_SET_IN_VAIN     ? EVENT_RUN_SET
           : cmd <= CMD_ENTER_IN_VAIN ? EVENT_RUN_ENTER
           : cmd <= CMD_LEAVE_GAP     ? EVENT_RUN_LEAVE
                                      : EVENT_RUN_YIELD;
}

/* A refresh is sent while the client waits, and may run when the next round is already in
 * flight. */
static bool may_refresh(const struct model *m, const struct line_state *s, size_t c, size_t i)
{
    enum line_cmd next = link_next(&s->places[i].link, c);
    return !m->world->never_refreshes && (next == CMD_NONE || next == CMD_ENTER) &&
           (s->phase[c] == PHASE_WAITING || s->phase[c] == PHASE_ASKING);
}

static void steps_of_link(struct model *m, const struct line_state *s, size_t c, size_t i)
{
    const struct line_link *l = &s->places[i].link;
    struct line_state next = *s;
    enum line_cmd cmd = link_next(l, c);
    if (cmd != CMD_NONE) {
        world_run(m->world, &next, i, c);
        visit(m, &next, event_of(cmd), c, i);
    }
    if (may_refresh(m, s, c, i)) {
        next = *s;
        world_refresh(m->world, &next, i, c);
        visit(m, &next, EVENT_REFRESH, c, i);
    }
    if ((cmd == CMD_LEAVE || cmd == CMD_LEAVE_GAP) && may(s, MAY_LOSE_LEAVE)) {
        next = spend(s, MAY_LOSE_LEAVE);
        link_pop(&next.places[i].link, c);
        visit(m, &next, EVENT_LOSE_LEAVE, c, i);
    }
    if (l->heard[c].is_offered && s->phase[c] == PHASE_DONE) {
        next = *s;
        world_decline(m->world, &next, i, c);
        visit(m, &next, EVENT_DECLINE, c, i);
    }
    if (l->heard[c].is_offered && may(s, MAY_LOSE_MESSAGE)) {
        next = *s;
        next.places[i].link.heard[c].is_offered = false;
        visit(m, &next, EVENT_LOSE_MESSAGE, c, i);
    }
}

static void steps_of_round(struct model *m, const struct line_state *s, size_t c)
{
    struct line_state next = *s;
    if (world_may_decide(m->world, s, c)) {
        world_decide(m->world, &next, c, NO_NODE, false);
        m->result->confirms += next.phase[c] == PHASE_HOLDING;
        visit(m, &next, EVENT_DECIDE, c, 0);
        if ((s->kept_long & client_bit(c)) != 0) {
            next = *s;
            world_decide(m->world, &next, c, NO_NODE, true);
            visit(m, &next, EVENT_DECIDE_LATE, c, 0);
        }
    }
    for (size_t i = 0; i < m->world->nodes && s->phase[c] == PHASE_ASKING; i++) {
        if (may(s, MAY_CUT) && world_is_answered(m->world, s, c, i)) {
            next = spend(s, MAY_CUT);
            world_decide(m->world, &next, c, i, false);
            visit(m, &next, EVENT_CUT, c, i);
        }
    }
}

/* Returns how many commands of the client are in flight to the node with the most of them. A limit
 * on this number keeps the number of states finite. */
static size_t sent_at_most(const struct model *m, const struct line_state *s, size_t c)
{
    size_t most = 0;
    for (size_t i = 0; i < m->world->nodes; i++) {
        size_t count = link_count(&s->places[i].link, c);
        most = count > most ? count : most;
    }
    return most;
}

static void steps_of_waiter(struct model *m, const struct line_state *s, size_t c)
{
    struct line_state next = *s;
    size_t sent = sent_at_most(m, s, c);
    if (world_known(m->world, s, c) != 0 && sent <= 1) {
        world_ask(m->world, &next, c);
        visit(m, &next, EVENT_ASK, c, 0);
    }
    next = *s;
    if (world_takes_offers(m->world, &next, c)) {
        visit(m, &next, EVENT_TAKE_OFFERS, c, 0);
    }
    if (may(s, MAY_GIVE_UP)) {
        next = spend(s, MAY_GIVE_UP);
        world_leave(m->world, &next, c, 0);
        visit(m, &next, EVENT_GIVE_UP, c, 0);
    }
}

static void steps_of_holder(struct model *m, const struct line_state *s, size_t c)
{
    struct line_state next = *s;
    world_leave(m->world, &next, c, 0);
    visit(m, &next, EVENT_RELEASE, c, 0);
    for (size_t i = 0; i <= m->world->nodes && may(s, MAY_GAP); i++) { /* to one node, or to all */
        unsigned all = (1U << m->world->nodes) - 1U;
        next = spend(s, MAY_GAP);
        world_leave(m->world, &next, c, i < m->world->nodes ? 1U << i : all);
        visit(m, &next, EVENT_RELEASE_GAP, c, i);
    }
}

static void steps_of_the_dead(struct model *m, const struct line_state *s, size_t c)
{
    struct line_state next = *s;
    bool has_sessions = false;
    for (size_t i = 0; i < m->world->nodes; i++) {
        struct line_node *n = &next.places[i].node;
        has_sessions = has_sessions || (n->alive & client_bit(c)) != 0;
        n->alive &= (uint8_t)~client_bit(c);
    }
    if (has_sessions) {
        visit(m, &next, EVENT_SESSION_ENDS, c, 0);
    }
}

static void steps_of_client(struct model *m, const struct line_state *s, size_t c)
{
    struct line_state next = *s;
    enum line_phase phase = (enum line_phase)s->phase[c];
    if (phase == PHASE_IDLE) {
        world_begin(m->world, &next, c);
        visit(m, &next, EVENT_BEGIN, c, 0);
    } else if (phase == PHASE_TRYING || phase == PHASE_ASKING) {
        steps_of_round(m, s, c);
    } else if (phase == PHASE_WAITING) {
        steps_of_waiter(m, s, c);
    } else if (phase == PHASE_HOLDING) {
        steps_of_holder(m, s, c);
    } else if (phase == PHASE_DEAD) {
        steps_of_the_dead(m, s, c);
    }
    if (may(s, MAY_DIE) && (line_is_in_line(s->phase[c]) || phase == PHASE_HOLDING)) {
        next = spend(s, MAY_DIE);
        for (size_t i = 0; i < m->world->nodes; i++) {
            link_forget(&next.places[i].link, c);
        }
        next.phase[c] = PHASE_DEAD;
        visit(m, &next, EVENT_DIE, c, 0);
    }
}

/* The key of a client that is gone expires at any time, an offer to a living client as its budget
 * allows, a lease of a living client never. */
static void expire(struct model *m, const struct line_state *s, size_t i)
{
    const struct line_place *p = &s->places[i];
    size_t c = (size_t)(p->node.owner - OWNER_FIRST);
    bool is_leaving = link_has(&p->link, c, CMD_LEAVE) || link_has(&p->link, c, CMD_LEAVE_GAP);
    bool is_gone = s->phase[c] == PHASE_DEAD || (s->phase[c] == PHASE_DONE && !is_leaving);
    struct line_state next = *s;
    if (!is_gone) {
        if (p->node.is_lease || !may(s, MAY_EXPIRE)) {
            return;
        }
        next = spend(s, MAY_EXPIRE);
        next.before = 0; /* it is not in line there until it asks */
    }
    node_expire(&next.places[i].node);
    visit(m, &next, EVENT_EXPIRE, c, i);
}

static void lose(struct model *m, const struct line_state *s, size_t i)
{
    struct line_state next;
    if (may(s, MAY_LOSE_LINE) && s->places[i].node.line != 0) {
        next = spend(s, MAY_LOSE_LINE);
        next.places[i].node.line = 0;
        next.before = 0;
        visit(m, &next, EVENT_LOSE_LINE, 0, i);
    }
    if (may(s, MAY_LOSE_SESSIONS) && s->places[i].node.alive != 0) {
        next = spend(s, MAY_LOSE_SESSIONS);
        next.places[i].node.alive = 0;
        next.places[i].node.has_any = false;
        next.before = 0;
        visit(m, &next, EVENT_LOSE_SESSIONS, 0, i);
    }
}

static void steps_of_foreign(struct model *m, const struct line_state *s, size_t i)
{
    uint8_t owner = s->places[i].node.owner;
    struct line_state next = *s;
    if (owner == OWNER_NOBODY && (may(s, MAY_FOREIGN) || may(s, MAY_FOREIGN_AGAIN))) {
        next = spend(s, may(s, MAY_FOREIGN) ? MAY_FOREIGN : MAY_FOREIGN_AGAIN);
        next.places[i].node.owner = OWNER_FOREIGN;
        visit(m, &next, EVENT_FOREIGN_TAKES, 0, i);
    } else if (owner == OWNER_FOREIGN) {
        node_expire(&next.places[i].node);
        visit(m, &next, EVENT_FOREIGN_LEAVES, 0, i);
    }
}

static void steps_of_node(struct model *m, const struct line_state *s, size_t i)
{
    if (is_client(s->places[i].node.owner)) {
        expire(m, s, i);
    }
    lose(m, s, i);
    steps_of_foreign(m, s, i);
    if (s->places[i].node.is_away) {
        struct line_state next = *s;
        next.places[i].node.is_away = false;
        visit(m, &next, EVENT_STAY, 0, i);
    }
}

static void expand(struct model *m, const struct line_state *s)
{
    for (size_t c = 0; c < m->world->clients; c++) {
        steps_of_client(m, s, c);
        for (size_t i = 0; i < m->world->nodes; i++) {
            steps_of_link(m, s, c, i);
        }
    }
    for (size_t i = 0; i < m->world->nodes; i++) {
        steps_of_node(m, s, i);
    }
}

/* ---- the search ---- */

static size_t tell_state(const struct model *m, const struct line_state *s, char *ret, size_t size)
{
    static const char *const phases[] = {"idle",    "trying", "asking", "waiting",
                                         "holding", "done",   "dead"};
    size_t used = 0;
    for (size_t c = 0; c < m->world->clients && used < size; c++) {
        used += (size_t)snprintf(ret + used, size - used, "%s ", phases[s->phase[c]]);
    }
    for (size_t i = 0; i < m->world->nodes && used < size; i++) {
        const struct line_node *n = &s->places[i].node;
        used += (size_t)snprintf(ret + used, size - used, "[%d line %x alive %x%s%s] ",
                                 n->owner - OWNER_FIRST, n->line, n->alive,
                                 n->is_lease ? " lease" : "", n->is_away ? " away" : "");
    }
    return used;
}

/* The number of a node refers to the order of nodes in each state. */
static void tell_trace(const struct model *m)
{
    static const char *const texts[] = {
#define X(name, text) text,
        EVENT_MAP(X)
#undef X
    };
    size_t path[64];
    size_t len = search_path(&m->search, m->violated_at, path, ARRAY_COUNT(path));
    size_t used = 0;
    for (size_t i = 0; i < len && used < sizeof m->result->trace - 256; i++) {
        uint32_t label = m->search.steps[path[i]].label;
        char *at = m->result->trace + used;
        size_t left = sizeof m->result->trace - used;
        int n = snprintf(at, left, "  node %u %s client %u -> ", label & 255U, texts[label >> 16U],
                         label >> 8U & 255U);
        struct line_state s = {.budget = 0};
        memcpy(&s, search_state(&m->search, path[i]), m->search.state_size);
        used += (size_t)n + tell_state(m, &s, at + n, left - (size_t)n);
        used += (size_t)snprintf(m->result->trace + used, 2, "\n");
    }
}

static bool init(struct model *m, size_t states_max)
{
    size_t size = offsetof(struct line_state, places) + m->world->nodes * sizeof(struct line_place);
    bool is_ok = search_init(&m->search, size, states_max);
    for (size_t i = 0; i < ARRAY_COUNT(m->drains); i++) {
        is_ok = drain_init(&m->drains[i], m->world, (enum drain_order)i) && is_ok;
    }
    return is_ok;
}

void line_model_run(const struct line_world *world, size_t states_max, struct line_result *ret)
{
    struct model m = {.world = world, .result = ret};
    *ret = (struct line_result){0};
    if (init(&m, states_max)) {
        struct line_state first;
        world_first(world, &first);
        visit(&m, &first, EVENT_FIRST, 0, 0);
    }
    for (size_t at = 0; at < m.search.count && ret->what == NULL && !m.search.is_too_big; at++) {
        struct line_state s = {.budget = 0};
        memcpy(&s, search_state(&m.search, at), m.search.state_size);
        m.search.from = (uint32_t)at;
        expand(&m, &s);
    }
    if (ret->what != NULL) {
        tell_trace(&m);
    }
    ret->states = m.search.count;
    ret->transitions = m.search.transitions;
    ret->is_too_big = m.search.is_too_big;
    for (size_t i = 0; i < ARRAY_COUNT(m.drains); i++) {
        ret->drained += m.drains[i].served.count;
        ret->is_too_big = ret->is_too_big || m.drains[i].served.is_too_big;
        drain_release(&m.drains[i]);
    }
    search_release(&m.search);
}
