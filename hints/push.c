/* SPDX-License-Identifier: Apache-2.0
 *
 * Pushes and counts hints: requests to the active node, with one command per set. It wakes pops,
 * too, with requests to the node on which a pop blocks. */
#include "base/recorder.h"
#include "hints/nodes.h"
#include "hints/wake.h"
#include "model/hint.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define PREFIX_MAX 64
#define REQUEST_BYTES_MAX ((size_t)4 << 20)
#define PAIRS_MAX 250 /* per ZADD: Redis serves other clients between two commands */

#define GROUPS_MAX 64

/* A key in a request, used by its commands from `first` on. */
struct request_key {
    size_t first;
    bool is_wrong_type;
    char text[HINT_KEY_MAX];
};

struct hints {
    struct hints_nodes *nodes;
    int64_t timeout_us;
    char prefix[PREFIX_MAX];
    struct buf scratch; /* the commands of one request */
    struct request_key keys[GROUPS_MAX];
    size_t key_count;
    uint32_t next[HINTS_PUSH_MAX];
};

/* A request in flight. */
struct request {
    struct hints *hints;
    size_t node;
    hints_pushed_cb *on_pushed; /* or one of the next two */
    hints_counted_cb *on_counted;
    hints_woken_cb *on_woken;
    void *ctx;
    int64_t sum; /* sum of the integers in its replies */
    int64_t first;
    struct err refusal;
    bool is_wrong_type; /* there was no other error */
    size_t key_count;
    struct request_key keys[];
};

enum status hints_open(const struct hints_options *options, struct hints **ret_hints,
                       struct err *err)
{
    assert(strlen(options->prefix) < PREFIX_MAX);
    struct hints *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return err_fail(err, STATUS_NOMEM, "hints");
    }
    h->timeout_us = options->timeout_us;
    memcpy(h->prefix, options->prefix, strlen(options->prefix) + 1);
    buf_init(&h->scratch, REQUEST_BYTES_MAX);
    struct hints_nodes_options nodes = {.user = options};
    enum status st = hints_nodes_open(&nodes, &h->nodes, err);
    if (st != STATUS_OK) {
        free(h);
        return st;
    }
    *ret_hints = h;
    return STATUS_OK;
}

void hints_close(struct hints *hints)
{
    if (hints == NULL) {
        return;
    }
    hints_nodes_close(hints->nodes);
    buf_release(&hints->scratch);
    free(hints);
}

enum status hints_set_password(struct hints *hints, const char *password, struct err *err)
{
    return hints_nodes_set_password(hints->nodes, password, err);
}

bool hints_is_up(const struct hints *hints)
{
    return hints_active_node(hints) >= 0;
}

int hints_active_node(const struct hints *hints)
{
    return hints_nodes_first_up(hints->nodes);
}

/* A key of the wrong type is handled like a wrong hint: hints are never authoritative
 * (fault.H3). */
static bool take_wrong_type(struct request *r, size_t index, const struct redis_value *value)
{
    if (value->type != REDIS_ERROR || strncmp(value->text, "WRONGTYPE", 9) != 0) {
        return false;
    }
    for (size_t i = r->key_count; i > 0; i--) {
        if (r->keys[i - 1].first <= index) {
            r->keys[i - 1].is_wrong_type = true;
            return true;
        }
    }
    return false;
}

static void on_reply(void *ctx, size_t index, const struct redis_value *value)
{
    struct request *r = ctx;
    if (value->type == REDIS_INTEGER) {
        r->sum += value->integer;
        return;
    }
    /* an empty array, or member and score */
    if (r->on_counted != NULL && value->type == REDIS_ARRAY) {
        r->first = value->len == 2 && value->items[1]->type == REDIS_STRING
                       ? hint_score_parse(value->items[1]->text)
                       : -1;
        return;
    }
    bool is_wrong_type = take_wrong_type(r, index, value);
    r->is_wrong_type = is_wrong_type && (r->is_wrong_type || r->refusal.status == STATUS_OK);
    err_set(&r->refusal, STATUS_UNAVAILABLE, 0, "refused: %s",
            value->type == REDIS_ERROR ? value->text : "not an integer");
}

/* Removes keys of the wrong type that are in the place of hints; the caller repeats its request. */
static void take_away(struct request *r)
{
    struct hints *h = r->hints;
    size_t count = 0;
    buf_reset(&h->scratch);
    for (size_t i = 0; i < r->key_count; i++) {
        const struct redis_arg args[] = {redis_word("UNLINK"), redis_word(r->keys[i].text)};
        if (r->keys[i].is_wrong_type &&
            redis_command(&h->scratch, args, ARRAY_COUNT(args), NULL) == STATUS_OK) {
            count++;
        }
    }
    const struct redis_request redis = {.bytes = buf_at(&h->scratch),
                                        .len = h->scratch.len,
                                        .reply_count = count,
                                        .timeout_us = h->timeout_us};
    struct err err = {0};
    if (redis_node_send(hints_nodes_connection(h->nodes, r->node), &redis, &err) != STATUS_OK) {
        hints_nodes_rest(h->nodes, r->node, &err);
    }
}

static void on_done(void *ctx, enum status st)
{
    struct request *r = ctx;
    if (st == STATUS_OK && r->refusal.status != STATUS_OK) {
        st = r->refusal.status;
        if (r->is_wrong_type) {
            take_away(r);
        } else {
            hints_nodes_rest(r->hints->nodes, r->node, &r->refusal);
        }
    }
    if (r->on_pushed != NULL) {
        record("push", st == STATUS_OK ? "ok" : "info", RECORD_I64("added", r->sum));
        r->on_pushed(r->ctx, st, r->sum);
    } else if (r->on_counted != NULL) {
        r->on_counted(r->ctx, st, r->sum, r->first);
    } else {
        r->on_woken(r->ctx, st);
    }
    free(r);
}

/* Sends the commands in `scratch`; node: −1 = none is up. */
static enum status send_scratch(struct hints *h, int node, size_t reply_count,
                                const struct request *request, struct err *err)
{
    if (node < 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "no node for hints is up");
    }
    struct request *r = malloc(sizeof *r + h->key_count * sizeof r->keys[0]);
    if (r == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for a request for hints");
    }
    *r = *request;
    r->key_count = h->key_count;
    memcpy(r->keys, h->keys, h->key_count * sizeof h->keys[0]);
    r->hints = h;
    r->node = (size_t)node;
    struct redis_request redis = {.bytes = buf_at(&h->scratch),
                                  .len = h->scratch.len,
                                  .reply_count = reply_count,
                                  .timeout_us = h->timeout_us,
                                  .on_reply = on_reply,
                                  .on_done = on_done,
                                  .ctx = r};
    enum status st = redis_node_send(hints_nodes_connection(h->nodes, r->node), &redis, err);
    if (st != STATUS_OK) {
        free(r);
    }
    return st;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_same_set(const struct hint *a, const struct hint *b)
{
    return is_same_text(a->queue, b->queue) && is_same_text(a->kind, b->kind);
}

#define NO_NEXT UINT32_MAX

/* The hints of one set, linked through hints->next. */
struct group {
    uint32_t first;
    uint32_t last;
};

/* Groups the list by set. Beyond GROUPS_MAX sets, hints without a group go to the last group, whose
 * ZADDs are then cut where the set changes. */
static size_t group_by_set(struct hints *h, const struct hint *list, size_t count,
                           struct group *groups)
{
    size_t group_count = 0;
    size_t g = 0;
    for (uint32_t i = 0; i < count; i++) {
        h->next[i] = NO_NEXT;
        if (group_count == 0 || !is_same_set(&list[i], &list[groups[g].first])) {
            for (g = 0; g < group_count; g++) {
                if (is_same_set(&list[i], &list[groups[g].first])) {
                    break;
                }
            }
        }
        if (g == group_count && group_count < GROUPS_MAX) {
            groups[group_count++] = (struct group){.first = i, .last = i};
            continue;
        }
        g = g < group_count ? g : group_count - 1;
        h->next[groups[g].last] = i;
        groups[g].last = i;
    }
    return group_count;
}

static void remember_key(struct hints *h, size_t first, const char *queue, const char *kind)
{
    struct request_key *key = &h->keys[h->key_count++];
    *key = (struct request_key){.first = first};
    (void)hint_key(key->text, h->prefix, queue, kind);
}

/* Writes one ZADD with up to PAIRS_MAX hints of one set, beginning with *i, which advances. LT: an
 * id that is already there gets the lower of both scores. */
static enum status write_zadd(struct hints *h, const struct hint *list, uint32_t *i,
                              struct err *err)
{
    struct redis_arg args[3 + 2 * PAIRS_MAX];
    char texts[2 * PAIRS_MAX][HINT_ID_TEXT_MAX + 1];
    char key[HINT_KEY_MAX];
    const struct hint *first = &list[*i];
    args[0] = (struct redis_arg){.bytes = "ZADD", .len = 4};
    args[1] = (struct redis_arg){.bytes = key,
                                 .len = hint_key(key, h->prefix, first->queue, first->kind)};
    args[2] = (struct redis_arg){.bytes = "LT", .len = 2};
    size_t n = 0;
    while (*i != NO_NEXT && n < ARRAY_COUNT(texts) && is_same_set(&list[*i], first)) {
        const int64_t numbers[2] = {list[*i].score, list[*i].id};
        for (size_t k = 0; k < 2; k++, n++) {
            int len = snprintf(texts[n], sizeof texts[n], "%" PRId64, numbers[k]);
            args[3 + n] = (struct redis_arg){.bytes = texts[n], .len = (size_t)len};
        }
        *i = h->next[*i];
    }
    return redis_command(&h->scratch, args, 3 + n, err);
}

enum status hints_push(struct hints *hints, const struct hint *list, size_t count,
                       hints_pushed_cb *done, void *ctx, struct err *err)
{
    assert(count >= 1 && count <= HINTS_PUSH_MAX && done != NULL);
    struct group groups[GROUPS_MAX];
    size_t group_count = group_by_set(hints, list, count, groups);
    size_t commands = 0;
    buf_reset(&hints->scratch);
    for (size_t i = 0; recorder_is_on() && i < count; i++) {
        record("push", "inv", RECORD_I64("job", list[i].id));
    }
    hints->key_count = 0;
    for (size_t g = 0; g < group_count; g++) {
        remember_key(hints, commands, list[groups[g].first].queue, list[groups[g].first].kind);
        for (uint32_t i = groups[g].first; i != NO_NEXT; commands++) {
            enum status st = write_zadd(hints, list, &i, err);
            if (st != STATUS_OK) {
                return st;
            }
        }
    }
    const struct request request = {.on_pushed = done, .ctx = ctx};
    return send_scratch(hints, hints_active_node(hints), commands, &request, err);
}

enum status hints_count(struct hints *hints, const struct hints_range *range,
                        hints_counted_cb *done, void *ctx, struct err *err)
{
    char key[HINT_KEY_MAX];
    /* from the priority's first score to just below the next priority's */
    char bounds[2][HINT_ID_TEXT_MAX + 2];
    char lowest[HINT_ID_TEXT_MAX + 1];
    int64_t from = range->priority * HINT_PRIORITY_STEP;
    (void)snprintf(lowest, sizeof lowest, "%" PRId64, range->from * HINT_PRIORITY_STEP);
    (void)snprintf(bounds[0], sizeof bounds[0], "%" PRId64, from);
    (void)snprintf(bounds[1], sizeof bounds[1], "(%" PRId64, from + HINT_PRIORITY_STEP);
    (void)hint_key(key, hints->prefix, range->queue, range->kind);
    const struct redis_arg count[] = {redis_word("ZCOUNT"), redis_word(key), redis_word(lowest),
                                      redis_word(bounds[1])};
    const struct redis_arg first[] = {
        redis_word("ZRANGE"),  redis_word(key),       redis_word(bounds[0]),
        redis_word(bounds[1]), redis_word("BYSCORE"), redis_word("LIMIT"),
        redis_word("0"),       redis_word("1"),       redis_word("WITHSCORES")};
    assert(done != NULL);
    buf_reset(&hints->scratch);
    hints->key_count = 0;
    remember_key(hints, 0, range->queue, range->kind);
    enum status st = redis_command(&hints->scratch, count, ARRAY_COUNT(count), err);
    if (st == STATUS_OK && range->wants_first) {
        st = redis_command(&hints->scratch, first, ARRAY_COUNT(first), err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    const struct request request = {.on_counted = done, .ctx = ctx, .first = -1};
    return send_scratch(hints, hints_active_node(hints), range->wants_first ? 2 : 1, &request, err);
}

/* ---- waking ---- */

enum status hints_wake(struct hints *hints, size_t node, const char *key, hints_woken_cb *done,
                       void *ctx, struct err *err)
{
    const struct redis_arg args[] = {redis_word("ZADD"), redis_word(key), redis_word("0"),
                                     redis_word(HINTS_WAKE_MEMBER)};
    if (!hints_nodes_is_up(hints->nodes, node)) {
        return err_fail(err, STATUS_UNAVAILABLE, "the node is not up");
    }
    buf_reset(&hints->scratch);
    enum status st = redis_command(&hints->scratch, args, ARRAY_COUNT(args), err);
    if (st != STATUS_OK) {
        return st;
    }
    hints->keys[0] = (struct request_key){.first = 0};
    (void)snprintf(hints->keys[0].text, sizeof hints->keys[0].text, "%s", key);
    hints->key_count = 1;
    const struct request request = {.on_woken = done, .ctx = ctx};
    return send_scratch(hints, (int)node, 1, &request, err);
}

enum status hints_tell_sleepers(struct hints *hints, const char *const *names, size_t count,
                                struct err *err)
{
    int node = hints_active_node(hints);
    assert(count >= 1 && count <= HINTS_PUSH_MAX);
    if (node < 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "no node for hints is up");
    }
    buf_reset(&hints->scratch);
    for (size_t i = 0; i < count; i++) {
        char key[HINT_KEY_MAX];
        (void)hint_wake_key(key, hints->prefix, names[i]);
        const struct redis_arg args[] = {redis_word("ZADD"), redis_word(key), redis_word("0"),
                                         redis_word(HINTS_NEWS_MEMBER)};
        enum status st = redis_command(&hints->scratch, args, ARRAY_COUNT(args), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    const struct redis_request redis = {.bytes = buf_at(&hints->scratch),
                                        .len = hints->scratch.len,
                                        .reply_count = count,
                                        .timeout_us = hints->timeout_us};
    return redis_node_send(hints_nodes_connection(hints->nodes, (size_t)node), &redis, err);
}

void hints_forget_sleeper(struct hints *hints, const char *name)
{
    char key[HINT_KEY_MAX];
    (void)hint_wake_key(key, hints->prefix, name);
    const struct redis_arg args[] = {redis_word("UNLINK"), redis_word(key)};
    buf_reset(&hints->scratch);
    if (redis_command(&hints->scratch, args, ARRAY_COUNT(args), NULL) != STATUS_OK) {
        return;
    }
    const struct redis_request redis = {.bytes = buf_at(&hints->scratch),
                                        .len = hints->scratch.len,
                                        .reply_count = 1,
                                        .timeout_us = hints->timeout_us};
    for (size_t node = 0; node < hints_nodes_count(hints->nodes); node++) {
        struct err err = {0};
        if (hints_nodes_is_up(hints->nodes, node) &&
            redis_node_send(hints_nodes_connection(hints->nodes, node), &redis, &err) !=
                STATUS_OK) {
            hints_nodes_rest(hints->nodes, node, &err);
        }
    }
}
