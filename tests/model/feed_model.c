/* SPDX-License-Identifier: Apache-2.0 */
#include "feed_model.h"

#include "feed_rest.h"
#include "feed_state.h"
#include "search.h"

#include <stdio.h>
#include <string.h>

#define STATES_MAX ((size_t)12 << 20)
#define PATH_MAX 128
#define READ_US_MAX (2 * TICK_US)   /* from the read to the end of the push */
#define UNSEEN_US_MAX (3 * TICK_US) /* without a cluster poll */

#define STEP_MAP(X)                                                          \
    X(BEGIN, "")                                                             \
    X(TIME, "(time goes on, and the leader polls the cluster)")              \
    X(TIME_UNSEEN, "(time goes on, and the leader cannot poll the cluster)") \
    X(CLOCK_BACK, "PostgreSQL's clock steps back")                           \
    X(CLOCK_ON, "PostgreSQL's clock steps on")                               \
    X(INSERT, "is written and committed")                                    \
    X(WRITE, "is written, uncommitted")                                      \
    X(WRITE_LATER, "is written for later, uncommitted")                      \
    X(COMMIT, "is committed")                                                \
    X(OLD, "is restored with an old time")                                   \
    X(CLAIM, "is popped and claimed")                                        \
    X(CLAIM_POPPED, "is claimed by whoever popped it before")                \
    X(HINT_LOST, "loses its hint")                                           \
    X(FINISH, "is finished")                                                 \
    X(BACK_PUSHED, "is given back, and its hint pushed")                     \
    X(BACK, "is given back, and its hint is not pushed")                     \
    X(RETRY, "fails, and is to run later")                                   \
    X(CANCEL, "is cancelled")                                                \
    X(EDIT, "is brought forward by a hand-written statement")                \
    X(LEADER, "another scheduler leads")                                     \
    X(FORGET_FED, "the leader forgets what it fed")                          \
    X(FORGET_LANE, "the leader forgets a lane")                              \
    X(RESET, "the leader hears of a node that was lost")                     \
    X(PASS, "a pass reads")                                                  \
    X(PASS_WHOLE, "a pass reads and pushes")                                 \
    X(PASS_KNOWN, "a pass reads the lanes that it knows")                    \
    X(PASS_GLANCE, "a pass glances at what is ahead of the cursors")         \
    X(PASS_UNCOUNTED, "a pass can not count the hints")                      \
    X(PASS_PUSHED, "… and has pushed")                                       \
    X(PASS_REPLY_LOST, "… pushes, and does not hear of it")                  \
    X(PASS_LOST, "… can not push")                                           \
    X(PASS_CUT, "… was cut off: nothing came")                               \
    X(FULL_WHOLE, "a full pass begins and ends")                             \
    X(FULL_BEGIN, "a full pass begins")                                      \
    X(FULL_READ, "the full pass reads a page")                               \
    X(FULL_PUSHED, "… the full pass has pushed it")                          \
    X(FULL_REPLY_LOST, "… the full pass does not hear of its push")          \
    X(FULL_LOST, "… the full pass can not push: it has failed")              \
    X(SAVE, "the marks are saved")

enum step_kind {
#define X(name, text) STEP_##name,
    STEP_MAP(X)
#undef X
};

struct model {
    const struct feed_model_options *options;
    struct feed_model_result *result;
    struct search search;
    struct world world;
    struct feed_state now; /* the state from which steps are taken */
    size_t violated_at;
    uint32_t violated_by; /* the step from there whose result was not stored; 0 = none */
};

/* ---- one step ---- */

static struct world *begin(struct model *m)
{
    state_unpack(&m->now, &m->world);
    return &m->world;
}

static void violated(struct model *m, size_t at, uint32_t by)
{
    if (!m->result->is_violated) {
        m->result->is_violated = true;
        m->result->what = m->world.violation;
        m->violated_at = at;
        m->violated_by = by;
    }
}

static bool wants_rest(const struct world *w)
{
    for (size_t i = 0; i < w->rules->rows; i++) {
        if (w->rows[i].phase == ROW_AVAILABLE && !w->rows[i].is_hinted) {
            return true;
        }
    }
    return false;
}

static void visit_with(struct model *m, enum step_kind kind, size_t which, unsigned clock_steps)
{
    struct feed_state s = {.clock_steps = (uint8_t)clock_steps & 7U};
    struct world *w = &m->world;
    state_pack(w, &s);
    uint32_t label = (uint32_t)kind << 8U | (uint32_t)which;
    bool is_new = search_visit(&m->search, &s, label);
    m->result->full_passes +=
        kind == STEP_FULL_WHOLE || (kind == STEP_FULL_PUSHED && w->full.stage == READ_IDLE);
    if (w->violation != NULL) {
        violated(m, m->search.from, label);
    } else if (is_new && wants_rest(w)) {
        m->result->rests++;
        w->recovered = 0;
        rest_run(w);
        m->result->recovered += w->recovered > 0;
        if (w->violation != NULL) {
            violated(m, m->search.count - 1, 0);
        }
    }
}

static void visit(struct model *m, enum step_kind kind, size_t which)
{
    visit_with(m, kind, which, m->now.clock_steps);
}

/* ---- changes of rows ---- */

static void set_row(struct model *m, size_t row, enum row_phase phase, int64_t us,
                    enum step_kind kind)
{
    struct world *w = begin(m);
    world_row_set(w, row, phase, us);
    visit(m, kind, row);
}

static void steps_of_unused(struct model *m, size_t row)
{
    int64_t pg_us = begin(m)->pg_us;
    set_row(m, row, ROW_AVAILABLE, pg_us, STEP_INSERT);
    set_row(m, row, ROW_OPEN, pg_us, STEP_WRITE);
    set_row(m, row, ROW_OPEN, pg_us + LATER_US, STEP_WRITE_LATER);
    if (!m->options->has_no_silence) {
        set_row(m, row, ROW_AVAILABLE, pg_us - LONG_AGO_US, STEP_OLD);
    }
}

static void steps_of_available(struct model *m, size_t row)
{
    struct world *w = begin(m);
    int64_t us = w->rows[row].us;
    int64_t pg_us = w->pg_us;
    bool is_hinted = w->rows[row].is_hinted;
    set_row(m, row, ROW_NONE, 0, STEP_CANCEL);
    if (us > pg_us) {
        if (!m->options->has_no_silence) {
            set_row(m, row, ROW_AVAILABLE, pg_us - LONG_AGO_US, STEP_EDIT);
        }
        return;
    }
    set_row(m, row, ROW_RUNNING, us, STEP_CLAIM_POPPED);
    if (is_hinted) {
        w = begin(m);
        w->rows[row].is_hinted = false;
        world_row_set(w, row, ROW_RUNNING, us);
        visit(m, STEP_CLAIM, row);
    }
}

static void steps_of_running(struct model *m, size_t row)
{
    int64_t pg_us = begin(m)->pg_us;
    set_row(m, row, ROW_NONE, 0, STEP_FINISH);
    set_row(m, row, ROW_AVAILABLE, pg_us + LATER_US, STEP_RETRY);
    struct world *w = begin(m);
    world_row_back(w, row);
    w->rows[row].is_hinted = true;
    visit(m, STEP_BACK_PUSHED, row);
    if (!m->options->has_no_silence) {
        w = begin(m);
        world_row_back(w, row);
        visit(m, STEP_BACK, row);
    }
}

static void steps_of_row(struct model *m, size_t row)
{
    struct world *w = begin(m);
    bool is_kept = m->options->has_no_loss && w->rows[row].phase != ROW_NONE;
    if (w->rows[row].is_hinted && !is_kept) {
        w->rows[row].is_hinted = false;
        visit(m, STEP_HINT_LOST, row);
        w = begin(m);
    }
    switch (w->rows[row].phase) {
    case ROW_NONE:
        if (!world_is_in_use(w, row)) {
            steps_of_unused(m, row);
        }
        break;
    case ROW_OPEN:
        set_row(m, row, ROW_AVAILABLE, w->rows[row].us, STEP_COMMIT);
        break;
    case ROW_AVAILABLE:
        steps_of_available(m, row);
        break;
    case ROW_RUNNING:
        steps_of_running(m, row);
        break;
    }
}

/* ---- the leader ---- */

static void steps_of_pass(struct model *m)
{
    struct world *w = begin(m);
    if (w->ahead.stage == READ_IDLE) {
        world_pass(w, PASS_EVERYWHERE);
        visit(m, STEP_PASS, 0);
        w = begin(m);
        world_pass(w, PASS_EVERYWHERE);
        if (w->ahead.stage != READ_IDLE) {
            world_pass_end(w, PUSH_DONE);
            visit(m, STEP_PASS_WHOLE, 0);
        }
        w = begin(m);
        world_pass(w, PASS_KNOWN_LANES);
        visit(m, STEP_PASS_KNOWN, 0);
        w = begin(m);
        world_pass(w, PASS_GLANCE);
        visit(m, STEP_PASS_GLANCE, 0);
        w = begin(m);
        world_pass_uncounted(w);
        visit(m, STEP_PASS_UNCOUNTED, 0);
        return;
    }
    static const enum step_kind ends[] = {STEP_PASS_PUSHED, STEP_PASS_REPLY_LOST, STEP_PASS_LOST};
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        w = begin(m);
        world_pass_end(w, (enum push_end)i);
        visit(m, ends[i], 0);
    }
    if (!m->options->has_no_loss) {
        w = begin(m);
        world_pass_cut(w);
        visit(m, STEP_PASS_CUT, 0);
    }
    w = begin(m);
    world_reset(w);
    visit(m, STEP_RESET, 0);
}

static void steps_of_full_pass(struct model *m)
{
    struct world *w = begin(m);
    static const enum step_kind ends[] = {STEP_FULL_PUSHED, STEP_FULL_REPLY_LOST, STEP_FULL_LOST};
    switch (w->full.stage) {
    case READ_IDLE:
        world_full_begin(w);
        visit(m, STEP_FULL_BEGIN, 0);
        w = begin(m);
        world_full_begin(w);
        world_full_finish(w);
        visit(m, STEP_FULL_WHOLE, 0);
        break;
    case READ_PLANNED:
        world_full_read(w);
        visit(m, STEP_FULL_READ, 0);
        break;
    case READ_ANSWERED:
        for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
            w = begin(m);
            world_full_end(w, (enum push_end)i);
            visit(m, ends[i], 0);
        }
        break;
    }
}

static void steps_of_memory(struct model *m)
{
    struct world *w = begin(m);
    bool is_idle = w->ahead.stage == READ_IDLE && w->full.stage == READ_IDLE;
    size_t places = w->feed.lane_count;
    world_clear_memory(w);
    visit(m, STEP_FORGET_FED, 0);
    for (size_t i = 0; is_idle && i < places; i++) {
        w = begin(m);
        for (size_t k = 0; k < places; k++) {
            w->feed.lanes[k].seen_us = k == i ? 0 : w->boot_us;
        }
        feed_lanes_forget(&w->feed, 1);
        visit(m, STEP_FORGET_LANE, i);
    }
    if (m->options->rules.is_mark_saved_later) {
        w = begin(m);
        memcpy(w->saved_us, w->mark_us, sizeof w->saved_us);
        visit(m, STEP_SAVE, 0);
    }
}

/* ---- all possible next steps ---- */

static void clock_step(struct model *m, enum step_kind kind, int64_t by_us)
{
    struct world *w = begin(m);
    w->pg_us += by_us;
    for (size_t i = 0; i < w->rules->rows; i++) {
        w->rows[i].is_owed = w->rows[i].is_owed && world_is_due(w, i);
    }
    visit_with(m, kind, 0, m->now.clock_steps - 1U);
}

static bool is_late(const struct world *w, const struct world_read *l)
{
    return l->stage == READ_ANSWERED && w->pg_us - l->pg_us > READ_US_MAX;
}

static void steps_of_time(struct model *m)
{
    for (int is_seen = 0; is_seen <= 1; is_seen++) {
        struct world *w = begin(m);
        w->pg_us += TICK_US;
        w->believed_us += TICK_US;
        bool is_unseen = w->pg_us - w->writers.last_us > UNSEEN_US_MAX;
        if (is_late(w, &w->ahead) || is_late(w, &w->full) || (is_seen == 0 && is_unseen)) {
            continue;
        }
        if (is_seen == 1) {
            world_tick(w);
        }
        visit(m, is_seen == 1 ? STEP_TIME : STEP_TIME_UNSEEN, 0);
    }
}

static void expand(struct model *m)
{
    if (!m->options->has_no_time) {
        steps_of_time(m);
    }
    for (size_t i = 0; i < m->options->rules.rows; i++) {
        steps_of_row(m, i);
    }
    steps_of_pass(m);
    if (!m->options->rules.has_no_full_pass) {
        steps_of_full_pass(m);
    }
    steps_of_memory(m);
    struct world *w = begin(m);
    world_lead(w);
    visit(m, STEP_LEADER, 0);
    if (m->now.clock_steps > 0) {
        clock_step(m, STEP_CLOCK_BACK, -CLOCK_STEP_US);
        clock_step(m, STEP_CLOCK_ON, CLOCK_STEP_US);
    }
}

static size_t tell_step(char *ret, size_t size, uint32_t label, int now)
{
    static const char *const texts[] = {
#define X(name, text) text,
        STEP_MAP(X)
#undef X
    };
    enum step_kind kind = (enum step_kind)(label >> 8U);
    char row[16] = "";
    if (kind >= STEP_INSERT && kind <= STEP_EDIT) {
        (void)snprintf(row, sizeof row, "row %u ", label & 255U);
    }
    int used = snprintf(ret, size, "  %d: %s%s\n", now, row, texts[kind]);
    return used > 0 && (size_t)used < size ? (size_t)used : size;
}

static void tell_trace(struct model *m)
{
    size_t path[PATH_MAX];
    size_t len = search_path(&m->search, m->violated_at, path, PATH_MAX);
    char *to = m->result->trace;
    size_t left = sizeof m->result->trace;
    int now = 0;
    for (size_t i = 0; i < len && left > 0; i++) {
        uint32_t label = m->search.steps[path[i]].label;
        now += label >> 8U == STEP_TIME || label >> 8U == STEP_TIME_UNSEEN;
        size_t used = tell_step(to, left, label, now);
        to += used;
        left -= used;
    }
    if (m->violated_by != 0 && left > 0) {
        (void)tell_step(to, left, m->violated_by, now);
    }
}

/* Searches level by level: all states that one step leads to, then two steps. */
static void search_all(struct model *m)
{
    struct feed_model_result *r = m->result;
    size_t level_end = m->search.count;
    for (size_t at = 0; at < m->search.count && !r->is_violated && !m->search.is_too_big; at++) {
        if (at == level_end) {
            level_end = m->search.count;
            if (++r->steps == m->options->steps_max) {
                return;
            }
        }
        memcpy(&m->now, search_state(&m->search, at), sizeof m->now);
        m->search.from = (uint32_t)at;
        expand(m);
    }
    r->is_complete = !r->is_violated && !m->search.is_too_big;
}

void feed_model_run(const struct feed_model_options *options, struct feed_model_result *ret)
{
    *ret = (struct feed_model_result){0};
    struct model m = {.options = options, .result = ret};
    ret->is_too_big = !search_init(&m.search, sizeof(struct feed_state), STATES_MAX) ||
                      !world_init(&m.world, &options->rules);
    if (!ret->is_too_big) {
        world_lead(&m.world);
        visit_with(&m, STEP_BEGIN, 0, options->clock_steps);
        search_all(&m);
    }
    ret->is_too_big = ret->is_too_big || m.search.is_too_big;
    ret->states = m.search.count;
    ret->transitions = m.search.transitions;
    if (ret->is_violated) {
        tell_trace(&m);
    }
    world_release(&m.world);
    search_release(&m.search);
}
