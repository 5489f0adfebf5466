/* SPDX-License-Identifier: Apache-2.0
 *
 * The popper runs a loop for each node: a script pop while the last pop brought as much as it asked
 * for, otherwise a blocking pop; at a trickle, script pops would find nothing after each hint. A
 * blocking pop takes from one set; if another set has content, the next pop brings it at once. The
 * loop stops when nothing is wanted or listened to, or the node is down; a poke, other sets or the
 * node's return start it again. There is one pop at a time per node.
 *
 * If a blocked pop lacks a set to which the popper listens by now, it is woken through the pushing
 * connection: the pop's first key is a set of our own (hints/wake.h). A wake that comes too late
 * for its pop ends the next one at once, and does nothing else. */
#include "base/bug.h"
#include "base/clock.h"
#include "base/rand.h"
#include "hints/nodes.h"
#include "hints/sets.h"
#include "hints/wake.h"
#include "model/hint.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define PREFIX_MAX 64
#define REQUEST_BYTES_MAX ((size_t)1 << 20)
#define WAKES_MAX 3                      /* per pop: one, repeated if it fails */
#define OWN_PLACE 1                      /* index of our own set in the keys of the script */
#define GOLDEN_STEP UINT32_C(0x9E3779B9) /* 2^32 / golden ratio: its multiples spread evenly */

enum pop { POP_NONE, POP_BLOCKING, POP_SCRIPT };

/* A wake in flight. It may outlive the popper, since its reply comes over another connection. */
struct waking {
    struct loop *loop; /* NULL = closed */
};

struct loop {
    struct hints_popper *popper;
    size_t node;
    bool has_content; /* the last pop brought as much as it asked for: there may be more */
    size_t rotation;  /* index of the first key of the next blocking pop */
    enum pop under_way;
    size_t asked;
    struct hints_sets *sets; /* of the pop in flight */
    struct waking *waking;   /* NULL = none is in flight */
    bool is_wake_due;        /* for the present pop, once the previous wake is answered */
    int wakes;               /* wakes sent for the present pop */
    struct err refusal;
    bool is_news;
    bool is_cut; /* the reply held more ids than fit: the rest is lost */
    size_t count;
    struct hint list[HINTS_POP_MAX];
};

struct hints_popper {
    struct hints_popper_options options;
    char prefix[PREFIX_MAX];
    char name[HINTS_SLEEPER_SIZE];
    struct hints_nodes *nodes;
    struct hints_sets *sets;
    struct loop *loops;
    size_t loop_count;
    bool is_closing;
    uint32_t draw; /* ARGV[2] of the next script pop */
    struct buf scratch;
    struct hints_popper_counters counters;
};

/* ---- replies ---- */

static int64_t read_score(const struct redis_value *v)
{
    return v->type == REDIS_STRING ? hint_score_parse(v->text) : 0;
}

static void take_member(struct loop *l, const struct redis_value *member, int64_t score,
                        const struct hints_set *set)
{
    int64_t id = 0;
    if (member->type != REDIS_STRING ||
        hint_id_parse(member->text, member->len, &id, NULL) != STATUS_OK) {
        l->popper->counters.junk++;
        return;
    }
    if (l->count == HINTS_POP_MAX) {
        l->is_cut = true;
        return;
    }
    l->list[l->count++] = (struct hint){.id = id,
                                        .score = score,
                                        .queue = set->queue,
                                        .kind = set->kind[0] == '\0' ? NULL : set->kind};
}

static void bad_reply(struct loop *l)
{
    l->is_cut = true; /* it may have contained ids */
    err_set(&l->refusal, STATUS_INTERNAL, 0, "a pop of hints got an unexpected reply");
}

static void read_wake_member(struct loop *l, const struct redis_value *member)
{
    const char *text = member->type == REDIS_STRING ? member->text : "";
    if (strcmp(text, HINTS_NEWS_MEMBER) == 0) {
        l->is_news = true;
        /* written by another client, and there may be more */
    } else if (strcmp(text, HINTS_WAKE_MEMBER) != 0) {
        hints_forget_sleeper(l->popper->options.waker, l->sets->sleeper);
    }
}

static bool is_wake(const struct loop *l, const struct redis_value *key)
{
    return key->type == REDIS_STRING && key->len == l->sets->wake_key_len &&
           memcmp(key->text, l->sets->wake_key, key->len) == 0;
}

/* Reads NIL (timeout) or {key, {{member, score}, …}}. */
static void read_blocking(struct loop *l, const struct redis_value *v)
{
    if (v->type == REDIS_NIL) {
        return;
    }
    if (v->type != REDIS_ARRAY || v->len != 2 || v->items[1]->type != REDIS_ARRAY) {
        bad_reply(l);
        return;
    }
    bool is_for_us = is_wake(l, v->items[0]);
    const struct hints_set *set = hints_sets_find(l->sets, v->items[0]->text, v->items[0]->len);
    const struct redis_value *pairs = v->items[1];
    for (size_t i = 0; i < pairs->len; i++) {
        const struct redis_value *pair = pairs->items[i];
        if ((set == NULL && !is_for_us) || pair->type != REDIS_ARRAY || pair->len != 2) {
            bad_reply(l);
            return;
        }
        if (is_for_us) {
            read_wake_member(l, pair->items[0]);
        } else {
            take_member(l, pair->items[0], read_score(pair->items[1]), set);
        }
    }
    l->has_content = !is_for_us && pairs->len >= l->asked;
}

/* Reads runs, see hints/sets.h. */
static void read_script(struct loop *l, const struct redis_value *v)
{
    size_t count = 0;
    if (v->type != REDIS_ARRAY) {
        bad_reply(l);
        return;
    }
    for (size_t i = 0; i < v->len; i++) {
        const struct redis_value *run = v->items[i];
        if (run->type != REDIS_ARRAY || run->len != 3 || run->items[0]->type != REDIS_INTEGER ||
            run->items[0]->integer < 1 || (size_t)run->items[0]->integer > 1 + l->sets->count ||
            run->items[2]->type != REDIS_ARRAY) {
            bad_reply(l);
            return;
        }
        size_t place = (size_t)run->items[0]->integer;
        int64_t score = read_score(run->items[1]);
        count += place == OWN_PLACE ? 0 : run->items[2]->len;
        for (size_t k = 0; k < run->items[2]->len; k++) {
            const struct redis_value *member = run->items[2]->items[k];
            if (place == OWN_PLACE) {
                read_wake_member(l, member);
            } else {
                take_member(l, member, score, &l->sets->names[place - OWN_PLACE - 1]);
            }
        }
    }
    l->has_content = count >= l->asked;
}

static void on_reply(void *ctx, size_t index, const struct redis_value *value)
{
    struct loop *l = ctx;
    (void)index;
    l->has_content = false;
    if (value->type == REDIS_ERROR) {
        err_set(&l->refusal, STATUS_UNAVAILABLE, 0, "refused: %s", value->text);
        if (strncmp(value->text, "WRONGTYPE", 9) == 0) { /* our own key may have the wrong type */
            hints_forget_sleeper(l->popper->options.waker, l->sets->sleeper);
        }
    } else if (l->under_way == POP_BLOCKING) {
        read_blocking(l, value);
    } else {
        read_script(l, value);
    }
}

static void pop_next(struct loop *l);

static void on_done(void *ctx, enum status st)
{
    struct loop *l = ctx;
    struct hints_popper *p = l->popper;
    struct hints_sets *sets = TAKE(l->sets);
    l->under_way = POP_NONE;
    if (l->refusal.status != STATUS_OK && !p->is_closing) {
        hints_nodes_rest(p->nodes, l->node, &l->refusal);
    }
    if (st != STATUS_OK || l->is_cut) {
        p->counters.lost_replies++;
        p->options.on_lost(p->options.ctx);
    }
    if (l->is_news) {
        p->options.on_news(p->options.ctx);
    }
    if (l->count > 0) {
        p->counters.popped += l->count;
        p->options.on_popped(p->options.ctx, l->list, l->count);
    }
    hints_sets_drop(sets);
    pop_next(l);
}

/* ---- pops ---- */

static enum status send_blocking(struct loop *l, struct err *err)
{
    struct hints_popper *p = l->popper;
    const struct hints_sets *sets = l->sets;
    char seconds[32];
    char numbers[2][24];
    int seconds_len =
        snprintf(seconds, sizeof seconds, "%" PRId64 ".%03" PRId64, p->options.block_us / US_PER_S,
                 p->options.block_us % US_PER_S / US_PER_MS);
    int keys_len = snprintf(numbers[0], sizeof numbers[0], "%zu", 1 + sets->count);
    int asked_len = snprintf(numbers[1], sizeof numbers[1], "%zu", l->asked);
    struct redis_arg args[HINTS_SETS_MAX + 7];
    size_t n = 0;
    args[n++] = (struct redis_arg){.bytes = "BZMPOP", .len = 6};
    args[n++] = (struct redis_arg){.bytes = seconds, .len = (size_t)seconds_len};
    args[n++] = (struct redis_arg){.bytes = numbers[0], .len = (size_t)keys_len};
    args[n++] = sets->all_keys[0];
    /* BZMPOP serves the first set with content: in a fixed order the others would starve. */
    l->rotation = (l->rotation + 1) % sets->count;
    memcpy(&args[n], &sets->keys[l->rotation], sets->count * sizeof args[0]);
    n += sets->count;
    args[n++] = (struct redis_arg){.bytes = "MIN", .len = 3};
    args[n++] = (struct redis_arg){.bytes = "COUNT", .len = 5};
    args[n++] = (struct redis_arg){.bytes = numbers[1], .len = (size_t)asked_len};
    buf_reset(&p->scratch);
    enum status st = redis_command(&p->scratch, args, n, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct redis_request request = {.bytes = buf_at(&p->scratch),
                                    .len = p->scratch.len,
                                    .reply_count = 1,
                                    .timeout_us = p->options.block_us + p->options.nodes.timeout_us,
                                    .on_reply = on_reply,
                                    .on_done = on_done,
                                    .ctx = l};
    return redis_node_send(hints_nodes_connection(p->nodes, l->node), &request, err);
}

static enum status send_script(struct loop *l, struct err *err)
{
    struct hints_popper *p = l->popper;
    const struct buf *shares = &l->sets->shares;
    char asked[24];
    char draw[24];
    (void)snprintf(asked, sizeof asked, "%zu", l->asked);
    (void)snprintf(draw, sizeof draw, "%" PRIu32, p->draw);
    struct redis_arg args[3] = {redis_word(asked)};
    size_t arg_count = 1;
    if (shares->len > 0) {
        p->draw += GOLDEN_STEP;
        args[arg_count++] = redis_word(draw);
        args[arg_count++] = redis_bytes(buf_at(shares), shares->len);
    }
    struct redis_script_call call = {.script = &hints_pop_script,
                                     .keys = l->sets->all_keys,
                                     .key_count = 1 + l->sets->count,
                                     .args = args,
                                     .arg_count = arg_count,
                                     .timeout_us = p->options.nodes.timeout_us,
                                     .on_reply = on_reply,
                                     .on_done = on_done,
                                     .ctx = l};
    return redis_node_call(hints_nodes_connection(p->nodes, l->node), &call, err);
}

/* Returns what is wanted beyond what script pops in flight may bring. Blocked pops don't count:
 * they wait on nodes that have nothing. */
static size_t wanted(const struct hints_popper *p)
{
    size_t want = p->options.want(p->options.ctx);
    for (size_t i = 0; i < p->loop_count && want > 0; i++) {
        const struct loop *l = &p->loops[i];
        if (l->under_way == POP_SCRIPT) {
            want = l->asked < want ? want - l->asked : 0;
        }
    }
    return want < HINTS_POP_MAX ? want : HINTS_POP_MAX;
}

static void pop_next(struct loop *l)
{
    struct hints_popper *p = l->popper;
    if (p->is_closing || l->under_way != POP_NONE || p->sets->count == 0 ||
        !hints_nodes_is_up(p->nodes, l->node)) {
        return;
    }
    l->asked = wanted(p);
    if (l->asked == 0) {
        return;
    }
    l->count = 0;
    l->is_cut = false;
    l->refusal = (struct err){0};
    l->is_news = false;
    l->is_wake_due = false;
    l->wakes = 0;
    l->sets = hints_sets_share(p->sets);
    l->under_way = l->has_content ? POP_SCRIPT : POP_BLOCKING;
    struct err err = {0};
    enum status st = l->has_content ? send_script(l, &err) : send_blocking(l, &err);
    if (st != STATUS_OK) {
        l->under_way = POP_NONE;
        hints_sets_drop(TAKE(l->sets));
        hints_nodes_rest(p->nodes, l->node, &err);
    }
}

static void on_node_up(void *ctx, size_t node)
{
    struct hints_popper *p = ctx;
    pop_next(&p->loops[node]);
}

/* ---- waking ---- */

static void wake(struct loop *l);

static void on_woken(void *ctx, enum status st)
{
    autofree struct waking *waking = ctx;
    struct loop *l = waking->loop;
    if (l == NULL) {
        return;
    }
    l->waking = NULL;
    bool is_lost = st != STATUS_OK && l->wakes > 0 && l->wakes < WAKES_MAX;
    if (l->under_way == POP_BLOCKING && (l->is_wake_due || is_lost)) {
        wake(l);
    }
}

/* Wakes the pop. A wake that can't be sent is not repeated: then hints don't reach that node
 * either, or not for long, and the pop ends by itself. */
static void wake(struct loop *l)
{
    l->is_wake_due = l->waking != NULL;
    if (l->is_wake_due) {
        return;
    }
    struct waking *waking = malloc(sizeof *waking);
    if (waking == NULL) {
        return;
    }
    waking->loop = l;
    if (hints_wake(l->popper->options.waker, l->node, l->sets->wake_key, on_woken, waking, NULL) !=
        STATUS_OK) {
        free(waking);
        return;
    }
    l->waking = waking;
    l->wakes++;
}

static void wake_outdated(struct hints_popper *p, enum hints_left left)
{
    for (size_t i = 0; i < p->loop_count && !SEEDED_BUG(20); i++) {
        struct loop *l = &p->loops[i];
        if (l->under_way == POP_BLOCKING && l->wakes == 0 &&
            (!hints_sets_are_within(p->sets, l->sets) ||
             (left == HINTS_LEFT_WOKEN && !hints_sets_are_within(l->sets, p->sets)))) {
            wake(l);
        }
    }
}

/* ---- opening and closing ---- */

enum status hints_popper_set_password(struct hints_popper *popper, const char *password,
                                      struct err *err)
{
    return hints_nodes_set_password(popper->nodes, password, err);
}

void hints_popper_name(struct hints_popper *popper, const char *name)
{
    (void)snprintf(popper->name, sizeof popper->name, "%s", name);
}

enum status hints_popper_listen(struct hints_popper *popper, const struct hints_set *sets,
                                size_t count, enum hints_left left, struct err *err)
{
    struct hints_sets *fresh = NULL;
    assert(count == 0 || popper->name[0] != '\0');
    enum status st = hints_sets_new(popper->prefix, popper->name, sets, count, &fresh, err);
    if (st != STATUS_OK) {
        return st;
    }
    hints_sets_drop(popper->sets);
    popper->sets = fresh;
    wake_outdated(popper, left);
    hints_popper_poke(popper);
    return STATUS_OK;
}

void hints_popper_poke(struct hints_popper *popper)
{
    for (size_t i = 0; i < popper->loop_count; i++) {
        pop_next(&popper->loops[i]);
    }
}

const struct hints_popper_counters *hints_popper_counters(const struct hints_popper *popper)
{
    return &popper->counters;
}

void hints_popper_close(struct hints_popper *popper)
{
    if (popper == NULL) {
        return;
    }
    popper->is_closing = true;
    for (size_t i = 0; i < popper->loop_count; i++) {
        if (popper->loops[i].waking != NULL) {
            popper->loops[i].waking->loop = NULL;
        }
    }
    hints_nodes_close(popper->nodes); /* ends the pops, so each loop drops its sets */
    hints_sets_drop(popper->sets);
    buf_release(&popper->scratch);
    free(popper->loops);
    free(popper);
}

static enum status popper_start(struct hints_popper *p, struct err *err)
{
    const struct hints_options *nodes = &p->options.nodes;
    p->loops = calloc(nodes->node_count, sizeof *p->loops);
    if (p->loops == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the popper");
    }
    p->loop_count = nodes->node_count;
    for (size_t i = 0; i < p->loop_count; i++) {
        p->loops[i].popper = p;
        p->loops[i].node = i;
    }
    enum status st = hints_sets_new(p->prefix, "", NULL, 0, &p->sets, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct hints_nodes_options options = {
        .user = nodes, .script = &hints_pop_script, .on_up = on_node_up, .ctx = p};
    return hints_nodes_open(&options, &p->nodes, err);
}

enum status hints_popper_open(const struct hints_popper_options *options,
                              struct hints_popper **ret_popper, struct err *err)
{
    assert(options->block_us > 0 && strlen(options->nodes.prefix) < PREFIX_MAX);
    assert(options->waker != NULL && options->on_news != NULL);
    assert(options->on_popped != NULL && options->want != NULL && options->on_lost != NULL);
    struct hints_popper *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_fail(err, STATUS_NOMEM, "popper");
    }
    p->options = *options;
    memcpy(p->prefix, options->nodes.prefix, strlen(options->nodes.prefix) + 1);
    buf_init(&p->scratch, REQUEST_BYTES_MAX);
    struct rand r;
    rand_seed_from_system(&r);
    p->draw = (uint32_t)rand_next(&r);
    enum status st = popper_start(p, err);
    if (st != STATUS_OK) {
        hints_popper_close(p);
        return st;
    }
    *ret_popper = p;
    return STATUS_OK;
}
