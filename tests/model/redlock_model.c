/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock_model.h"

#include "redlock/rules/lease.h"
#include "redlock_state.h"
#include "search.h"

#include <stdio.h>
#include <string.h>

#define MIN_VALIDITY 1
#define STATES_MAX ((size_t)24 << 20)

#define STEP_MAP(X)                                    \
    X(BEGIN, "")                                       \
    X(TICK, "(time goes on)")                          \
    X(START, "sends its SETs")                         \
    X(SET_RUNS, "SET runs")                            \
    X(VOTE, "its vote is heard")                       \
    X(SET_LOST, "is given up by the client")           \
    X(RELEASE, "gives its lock back")                  \
    X(RELEASE_RUNS, "the release runs")                \
    X(EXTEND, "begins to extend")                      \
    X(EXTEND_RUNS, "extending runs")                   \
    X(EXTEND_VOTE, "its answer to extending is heard") \
    X(EXTEND_LOST, "is given up in extending")         \
    X(HEAL_RUNS, "the copy is healed")                 \
    X(EXPIRE, "the key expires")                       \
    X(RESTART, "the node restarts, empty")             \
    X(FLUSH, "the node forgets, and goes on")

enum step_kind {
#define X(name, text) STEP_##name,
    STEP_MAP(X)
#undef X
};

struct model {
    struct model_options options;
    struct model_result *result;
    struct lease_terms terms;
    struct search search;
    size_t violated_at;
};

/* ---- the set of states ---- */

static bool is_holding(const struct state *s, size_t attempt)
{
    const struct attempt *a = &s->attempts[attempt];
    return a->stage == HOLDING && a->lease_state != REDLOCK_STATE_LOST && a->lasts > 0;
}

static void visit(struct model *m, const struct state *next, enum step_kind kind, size_t attempt,
                  size_t node)
{
    struct state s = *next;
    state_normalize(&s);
    uint32_t label = (uint32_t)kind << 16U | (uint32_t)attempt << 8U | (uint32_t)node;
    bool is_new = search_visit(&m->search, &s, label);
    if (is_new && is_holding(&s, 0) && is_holding(&s, 1) && !m->result->is_violated) {
        m->result->is_violated = true;
        m->violated_at = m->search.count - 1;
    }
}

/* ---- clients ---- */

/* The release goes to every node to which the SET was sent (lock.A10, R2). */
static void end_attempt(struct state *s, size_t attempt)
{
    uint8_t extensions = s->attempts[attempt].extensions;
    s->attempts[attempt] = (struct attempt){.stage = OVER, .extensions = extensions};
    for (size_t i = 0; i < NODES; i++) {
        struct talk *t = &s->nodes[i].talks[attempt];
        t->release = t->set != NOT_SENT;
        t->set = t->set == ASKED || t->set == ASKED_IN_VAIN ? ASKED_IN_VAIN
                 : t->set != NOT_SENT                       ? DONE
                                                            : NOT_SENT;
        t->extend = t->extend == ASKED || t->extend == ASKED_IN_VAIN ? ASKED_IN_VAIN : NOT_SENT;
    }
}

static struct lease lease_of(const struct attempt *a)
{
    return (struct lease){.deadline_us = a->lasts, .state = (enum redlock_state)a->lease_state};
}

static void count_vote(struct model *m, struct state *s, size_t attempt, enum vote vote)
{
    struct attempt *a = &s->attempts[attempt];
    if (a->stage != ASKING) {
        return; /* a late vote: nothing depends on it */
    }
    struct tally tally = {.nodes = NODES, .ok = a->ok, .refused = a->refused, .error = a->error};
    tally_add(&tally, vote);
    a->ok = tally.ok;
    a->refused = tally.refused;
    a->error = tally.error;
    if (m->options.is_won_by_one && tally.ok > 0) {
        tally.ok = NODES / 2 + 1;
        tally.refused = 0;
        tally.error = 0;
    }
    struct lease lease = lease_start(&m->terms, m->options.counts_from_the_reply ? 0 : -a->age);
    enum redlock_result verdict = REDLOCK_INVALID;
    if (!tally_verdict(&tally, lease.deadline_us, MIN_VALIDITY, &verdict)) {
        return;
    }
    m->result->verdicts[verdict]++;
    if (verdict != REDLOCK_OK) {
        end_attempt(s, attempt);
        return;
    }
    *a = (struct attempt){.stage = HOLDING,
                          .lasts = (uint8_t)lease.deadline_us,
                          .lease_state = (uint8_t)lease.state,
                          .extensions = a->extensions};
}

static void start(struct model *m, struct state *s, size_t attempt)
{
    s->attempts[attempt].stage = ASKING;
    for (size_t i = 0; i < NODES; i++) {
        bool is_trusted = m->options.has_no_quarantine || s->nodes[i].quarantine == 0 ||
                          s->nodes[i].is_flushed; /* it does not know of the flush */
        if (is_trusted) {
            s->nodes[i].talks[attempt].set = ASKED;
        } else {
            count_vote(m, s, attempt, VOTE_ERROR);
        }
    }
}

static void begin_round(struct state *s, size_t attempt)
{
    struct attempt *a = &s->attempts[attempt];
    a->extensions++;
    a->is_extending = true;
    for (size_t i = 0; i < NODES; i++) { /* to quarantined nodes, too (lock.E2) */
        s->nodes[i].talks[attempt].extend = ASKED;
    }
}

/* lock.E6: a round that has its quorum sets the key again on nodes that had lost it. */
static void end_round(struct state *s, size_t attempt, bool is_confirmed)
{
    struct attempt *a = &s->attempts[attempt];
    a->is_extending = false;
    a->round_age = a->confirmed = a->denied = a->failed = 0;
    for (size_t i = 0; i < NODES; i++) {
        struct talk *t = &s->nodes[i].talks[attempt];
        if (is_confirmed && t->extend == SAID_MISSING) {
            t->heal = 1;
        }
        t->extend = t->extend == ASKED || t->extend == ASKED_IN_VAIN ? ASKED_IN_VAIN : NOT_SENT;
    }
}

static void count_extension(struct model *m, struct state *s, size_t attempt,
                            const struct extend_tally *tally)
{
    struct attempt *a = &s->attempts[attempt];
    a->confirmed = tally->confirmed;
    a->denied = tally->denied;
    a->failed = tally->error;
    enum extend_verdict verdict = extend_tally_verdict(tally);
    if (m->options.is_extended_by_one && tally->confirmed > 0) {
        verdict = EXTEND_DONE;
    }
    if (verdict == EXTEND_OPEN) {
        return;
    }
    struct lease lease = lease_of(a);
    (void)lease_extend(&lease, &m->terms, verdict, -a->round_age, 0);
    a->lasts = (uint8_t)lease.deadline_us;
    a->lease_state = (uint8_t)lease.state;
    m->result->extended += verdict == EXTEND_DONE && lease.state == REDLOCK_STATE_HELD;
    end_round(s, attempt, verdict == EXTEND_DONE);
    if (lease.state == REDLOCK_STATE_LOST) {
        m->result->lost++;
        end_attempt(s, attempt);
    }
}

static void hear_extension(struct model *m, struct state *s, size_t attempt, size_t node)
{
    const struct attempt *a = &s->attempts[attempt];
    struct talk *t = &s->nodes[node].talks[attempt];
    struct extend_tally tally = {
        .nodes = NODES, .confirmed = a->confirmed, .denied = a->denied, .error = a->failed};
    if (t->extend == SAID_YES) {
        tally.confirmed++;
    } else if (t->extend == SAID_NO || t->extend == SAID_MISSING) {
        tally.denied++;
    } else {
        tally.error++;
    }
    /* "Missing" is kept until the round ends, since it may be healed then. */
    t->extend = t->extend == ASKED          ? ASKED_IN_VAIN
                : t->extend == SAID_MISSING ? SAID_MISSING
                                            : DONE;
    count_extension(m, s, attempt, &tally);
}

/* ---- nodes ---- */

static void own(struct state *s, size_t node, size_t attempt)
{
    s->nodes[node].owner = (uint8_t)(attempt + 1);
    s->nodes[node].expires_in = TTL;
}

/* If the canary read after the SET is not the one that the client knows, there is no vote
 * (lock.N9). */
static void run_set(const struct model *m, struct state *s, size_t attempt, size_t node)
{
    struct node *n = &s->nodes[node];
    struct talk *t = &n->talks[attempt];
    bool is_free = n->owner == 0;
    if (is_free) {
        own(s, node, attempt);
    }
    bool has_changed = n->is_flushed && !m->options.has_no_canary;
    t->set = t->set == ASKED_IN_VAIN ? DONE : !is_free ? SAID_NO : has_changed ? DEAD : SAID_YES;
}

static void run_extend(const struct model *m, struct state *s, size_t attempt, size_t node)
{
    struct node *n = &s->nodes[node];
    struct talk *t = &n->talks[attempt];
    bool is_mine = n->owner == attempt + 1;
    if (is_mine) {
        own(s, node, attempt);
    }
    bool has_changed = n->is_flushed && !m->options.has_no_canary_of_rounds;
    t->extend = t->extend == ASKED_IN_VAIN ? NOT_SENT
                : is_mine && has_changed   ? DEAD
                : is_mine                  ? SAID_YES
                : n->owner == 0            ? SAID_MISSING
                                           : SAID_NO;
}

static void forget(struct node *n)
{
    n->owner = 0;
    n->expires_in = 0;
}

/* Its quarantine begins when a client notices, which is not earlier than now. */
static void flush(struct state *s, size_t node)
{
    struct node *n = &s->nodes[node];
    s->losses_left--;
    forget(n);
    n->quarantine = TTL + DRIFT;
    n->is_flushed = 1;
}

static uint8_t connection_lost(uint8_t way)
{
    return way == ASKED ? DEAD : way == ASKED_IN_VAIN ? DONE : way;
}

static void restart(struct state *s, size_t node)
{
    struct node *n = &s->nodes[node];
    s->losses_left--;
    forget(n);
    n->quarantine = TTL + DRIFT;
    for (size_t i = 0; i < ATTEMPTS; i++) {
        n->talks[i].set = connection_lost(n->talks[i].set) & 7U;
        n->talks[i].extend = connection_lost(n->talks[i].extend) & 7U;
        n->talks[i].heal = 0;
        n->talks[i].release = 0;
    }
}

static void age(uint8_t *ticks)
{
    *ticks = *ticks < TTL ? *ticks + 1 : TTL;
}

static void tick(struct model *m, struct state *s)
{
    for (size_t i = 0; i < NODES; i++) {
        struct node *n = &s->nodes[i];
        n->quarantine = n->quarantine > 0 ? n->quarantine - 1 : 0;
        n->is_flushed = n->is_flushed && n->quarantine > 0;
        if (n->owner != 0 && --n->expires_in == 0) {
            forget(n);
        }
    }
    for (size_t i = 0; i < ATTEMPTS; i++) {
        struct attempt *a = &s->attempts[i];
        if (a->stage == ASKING) {
            age(&a->age);
        }
        if (a->is_extending) {
            age(&a->round_age);
        }
        if (a->stage == HOLDING) {
            struct lease lease = lease_of(a);
            a->lasts--;
            if (lease_check(&lease, 1)) {
                m->result->lost++;
                end_attempt(s, i);
            }
        }
    }
}

/* ---- all possible next steps ---- */

static void steps_of_attempt(struct model *m, const struct state *s, size_t i)
{
    const struct attempt *a = &s->attempts[i];
    struct state next = *s;
    if (a->stage == IDLE) {
        start(m, &next, i);
        visit(m, &next, STEP_START, i, 0);
    } else if (a->stage == HOLDING) {
        end_attempt(&next, i);
        visit(m, &next, STEP_RELEASE, i, 0);
        if (!a->is_extending && a->extensions < m->options.extensions) {
            next = *s;
            begin_round(&next, i);
            visit(m, &next, STEP_EXTEND, i, 0);
        }
    }
}

static void steps_of_set(struct model *m, const struct state *s, size_t i, size_t node)
{
    const struct talk *t = &s->nodes[node].talks[i];
    struct state next = *s;
    if (t->set == ASKED || t->set == ASKED_IN_VAIN) {
        run_set(m, &next, i, node);
        visit(m, &next, STEP_SET_RUNS, i, node);
    }
    if (t->set == SAID_YES || t->set == SAID_NO) {
        next = *s;
        next.nodes[node].talks[i].set = DONE;
        count_vote(m, &next, i, t->set == SAID_YES ? VOTE_OK : VOTE_REFUSED);
        visit(m, &next, STEP_VOTE, i, node);
    }
    if (t->set == ASKED || t->set == DEAD || t->set == SAID_YES || t->set == SAID_NO) {
        next = *s;
        next.nodes[node].talks[i].set = t->set == ASKED ? ASKED_IN_VAIN : DONE;
        count_vote(m, &next, i, VOTE_ERROR);
        visit(m, &next, STEP_SET_LOST, i, node);
    }
}

static void steps_of_extend(struct model *m, const struct state *s, size_t i, size_t node)
{
    const struct talk *t = &s->nodes[node].talks[i];
    struct state next = *s;
    if (t->extend == ASKED || t->extend == ASKED_IN_VAIN) {
        run_extend(m, &next, i, node);
        visit(m, &next, STEP_EXTEND_RUNS, i, node);
    }
    bool is_reply = t->extend == SAID_YES || t->extend == SAID_NO || t->extend == SAID_MISSING;
    if (is_reply && s->attempts[i].is_extending) {
        next = *s;
        hear_extension(m, &next, i, node);
        visit(m, &next, STEP_EXTEND_VOTE, i, node);
    }
    if ((t->extend == ASKED || t->extend == DEAD) && s->attempts[i].is_extending) {
        next = *s;
        hear_extension(m, &next, i, node);
        visit(m, &next, STEP_EXTEND_LOST, i, node);
    }
}

static void steps_of_rest(struct model *m, const struct state *s, size_t i, size_t node)
{
    const struct node *n = &s->nodes[node];
    struct state next = *s;
    if (n->talks[i].heal != 0) {
        next.nodes[node].talks[i].heal = 0;
        if (n->owner == 0) {
            own(&next, node, i);
        }
        visit(m, &next, STEP_HEAL_RUNS, i, node);
    }
    if (n->talks[i].release != 0) {
        next = *s;
        next.nodes[node].talks[i].release = 0;
        if (n->owner == i + 1) {
            forget(&next.nodes[node]);
        }
        visit(m, &next, STEP_RELEASE_RUNS, i, node);
    }
}

static void steps_of_node(struct model *m, const struct state *s, size_t node)
{
    const struct node *n = &s->nodes[node];
    struct state next = *s;
    if (n->owner != 0 && n->expires_in <= DRIFT) { /* by a fast clock */
        forget(&next.nodes[node]);
        visit(m, &next, STEP_EXPIRE, n->owner - 1U, node);
    }
    if (s->losses_left > 0) {
        next = *s;
        restart(&next, node);
        visit(m, &next, STEP_RESTART, 0, node);
    }
    if (s->losses_left > 0 && !m->options.never_flushes) {
        next = *s;
        flush(&next, node);
        visit(m, &next, STEP_FLUSH, 0, node);
    }
}

static void expand(struct model *m, const struct state *s)
{
    for (size_t i = 0; i < ATTEMPTS; i++) {
        steps_of_attempt(m, s, i);
        for (size_t node = 0; node < NODES; node++) {
            steps_of_set(m, s, i, node);
            steps_of_extend(m, s, i, node);
            steps_of_rest(m, s, i, node);
        }
    }
    for (size_t node = 0; node < NODES; node++) {
        steps_of_node(m, s, node);
    }
    struct state next = *s;
    tick(m, &next);
    visit(m, &next, STEP_TICK, 0, 0);
}

/* Numbers of nodes and clients refer to their order in each state. */
static void tell_trace(struct model *m)
{
    static const char *const texts[] = {
#define X(name, text) text,
        STEP_MAP(X)
#undef X
    };
    size_t path[64];
    size_t len = search_path(&m->search, m->violated_at, path, ARRAY_COUNT(path));
    size_t used = 0;
    unsigned now = 0;
    for (size_t i = 0; i < len && used < sizeof m->result->trace; i++) {
        uint32_t label = m->search.steps[path[i]].label;
        uint32_t kind = label >> 16U;
        now += kind == STEP_TICK;
        used += (size_t)snprintf(m->result->trace + used, sizeof m->result->trace - used,
                                 "  %u: client %u, node %u: %s\n", now, label >> 8U & 255U,
                                 label & 255U, texts[kind]);
    }
}

void model_run(const struct model_options *options, struct model_result *ret)
{
    struct model m = {.options = *options, .result = ret};
    *ret = (struct model_result){0};
    m.terms.ttl_us = TTL;
    m.terms.drift_us = options->has_no_margin ? 0 : DRIFT;
    if (search_init(&m.search, sizeof(struct state), STATES_MAX)) {
        const struct state first = {.losses_left = 1};
        visit(&m, &first, STEP_BEGIN, 0, 0);
    }
    for (size_t at = 0; at < m.search.count && !ret->is_violated && !m.search.is_too_big; at++) {
        struct state s;
        memcpy(&s, search_state(&m.search, at), sizeof s);
        m.search.from = (uint32_t)at;
        expand(&m, &s);
    }
    if (ret->is_violated) {
        tell_trace(&m);
    }
    ret->states = m.search.count;
    ret->transitions = m.search.transitions;
    ret->is_too_big = m.search.is_too_big;
    search_release(&m.search);
}
