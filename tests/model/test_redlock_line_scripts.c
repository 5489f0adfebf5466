/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the Lua scripts of the lines with the model's version in C (tests/model/line_node.h):
 * the same random histories of two keys give the same replies, messages and states. */
#include "base/clock.h"
#include "cluster/servers.h"
#include "line_node.h"
#include "redis/redis.h"
#include "redis/subscriber.h"
#include "redlock/core/line_scripts.h"
#include "redlock/rules/line_rules.h"
#include "support/suite_dir.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_US (120 * US_PER_S)
#define HISTORIES 24
#define STEPS 250
#define KEYS 2
#define CLIENTS LINE_CLIENTS_MAX
#define P "line-test:"
#define OFFER_MS "60000"
#define GAP_MS "70000"
#define LEASE_MS "600000" /* longer, to distinguish it from offers and gaps */
#define TEXT_MAX 2048

/* Returns the present state as text. Prolongs what expires soon: the model has no time. */
static const struct redis_script script_look = {
    .name = "look",
    .body =
        "local P, out = ARGV[1], ''\n"
        "for _, K in ipairs(KEYS) do\n"
        "  local owner, foreign = redis.call('GET', K), redis.call('GET', P .. 'foreign:' .. K)\n"
        "  out = out .. '(' .. (owner or '') .. (owner and (redis.call('PTTL', K) > 300000\n"
        "    and ' lease' or ' offer') or '') .. ' line '\n"
        "    .. table.concat(redis.call('ZRANGE', P .. 'line:' .. K, 0, -1), ' ')\n"
        "    .. ' away ' .. redis.call('EXISTS', P .. 'away:' .. K)\n"
        "  local over = tonumber(redis.call('GET', P .. 'turns:' .. K) or '-1')\n"
        "  local now = redis.call('TIME')[1] * 1000\n"
        "  out = out .. ' turns ' .. (over < 0 and 0 or over > now and 1 or 2)\n"
        "    .. ' foreign ' .. (not foreign and 0 or foreign == '0' and 2\n"
        "      or foreign == '-1' and 3 or 1) .. ')'\n"
        "  if over > now then redis.call('SET', P .. 'turns:' .. K, '9999999999999') end\n"
        "  if foreign and tonumber(foreign) > 0 then redis.call('SET', P .. 'foreign:' .. K, '1') "
        "end\n"
        "end\n"
        "out = out .. ' any ' .. redis.call('EXISTS', P .. 'any') .. ' alive'\n"
        "for i = 2, #ARGV do out = out .. ' ' .. redis.call('EXISTS', P .. 'alive:' .. ARGV[i]) "
        "end\n"
        "return out\n",
};
static const struct redis_script *const scripts[] = {&script_enter, &script_leave, &script_yield,
                                                     &script_refresh, &script_look};
static const char *const keys[KEYS + 1] = {"k:0", "k:1"};
static const char *look_args[CLIENTS + 2];
#define LABEL "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static const char *const labels[CLIENTS] = {"", "|a label", ("|" LABEL), ""};
static const char *const foreign_values[] = {
    "x", "another-client-of-27-charac", "another-client-of-27-charac|x",
    "twelve-chars~too-long-for-one", ("twelve-chars~and-fourteen..|" LABEL "+")};

static char base_dir[SERVER_PATH_MAX];
static struct redis_server server;
static uv_loop_t loop;
static uv_timer_t tick;
static struct redis_node *node;
static struct redis_subscriber *subs[CLIENTS];

static struct {
    size_t ups;
    size_t subscribed;
    size_t done;
    char reply[2][TEXT_MAX]; /* of the operation, and of the look after it */
    uint64_t random;
    char values[CLIENTS][VALUE_SIZE];
    char clients[CLIENTS][REDLOCK_PREFIX_LEN + 1];
    char scores[CLIENTS][24];
    struct line_node nodes[KEYS]; /* the model's nodes */
    char expected[TEXT_MAX];
    size_t foreign[KEYS]; /* index of the value */
    bool may_end[KEYS];   /* turns are short after a foreign client */
    struct heard {
        char channel[64];
        char messages[1 << 16];
        size_t messages_len;
        char expected[1 << 16];
        size_t expected_len;
    } heard[CLIENTS];
} t;

#define run_until(expr)                             \
    do {                                            \
        int64_t end_ = clock_boot_us() + LIMIT_US;  \
        while (!(expr) && clock_boot_us() < end_) { \
            (void)uv_run(&loop, UV_RUN_ONCE);       \
        }                                           \
        ck_assert_msg((expr), "never: %s", #expr);  \
    } while (0)

/* ---- the real server ---- */

static enum status on_up(void *ctx, struct redis_node *n, const struct redis_server_info *info,
                         struct err *err)
{
    (void)ctx;
    (void)n;
    (void)info;
    (void)err;
    t.ups++;
    return STATUS_OK;
}

static void on_message(void *ctx, const char *payload, size_t payload_len)
{
    struct heard *h = ctx;
    h->messages_len +=
        (size_t)snprintf(h->messages + h->messages_len, sizeof h->messages - h->messages_len,
                         "%.*s\n", (int)payload_len, payload);
}

static void on_subscribed(void *ctx)
{
    (void)ctx;
    t.subscribed++;
}

/* Writes durations as what they stand for. */
static size_t write_integer(char *out, size_t size, int64_t n)
{
    return n > 300000 ? (size_t)snprintf(out, size, "lease")
           : n > 1000 ? (size_t)snprintf(out, size, "short")
                      : (size_t)snprintf(out, size, "%" PRId64, n);
}

static size_t write_value(char *out, size_t size, const struct redis_value *v)
{
    size_t used = 0;
    if (v->type == REDIS_INTEGER) {
        return write_integer(out, size, v->integer);
    }
    if (v->type != REDIS_ARRAY) {
        return (size_t)snprintf(out, size, "%s", v->type == REDIS_NIL ? "nil" : v->text);
    }
    used += (size_t)snprintf(out, size, "[");
    for (size_t i = 0; i < v->len; i++) {
        used += write_value(out + used, size - used, v->items[i]);
        used += (size_t)snprintf(out + used, size - used, i + 1 < v->len ? "," : "");
    }
    return used + (size_t)snprintf(out + used, size - used, "]");
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    (void)index;
    (void)write_value(ctx, TEXT_MAX, v);
}

static void on_done(void *ctx, enum status st)
{
    (void)ctx;
    ck_assert_int_eq(st, STATUS_OK);
    t.done++;
}

static void call(const struct redis_script *script, char *reply, const char *const *key_words,
                 const char *const *arg_words)
{
    struct redis_arg key_args[KEYS + 1];
    struct redis_arg args[16];
    struct redis_script_call c = {.script = script,
                                  .keys = key_args,
                                  .args = args,
                                  .timeout_us = LIMIT_US,
                                  .on_reply = on_reply,
                                  .on_done = on_done,
                                  .ctx = reply};
    for (; key_words[c.key_count] != NULL; c.key_count++) {
        key_args[c.key_count] = redis_word(key_words[c.key_count]);
    }
    for (; arg_words[c.arg_count] != NULL; c.arg_count++) {
        args[c.arg_count] = redis_word(arg_words[c.arg_count]);
    }
    ck_assert_int_eq(redis_node_call(node, &c, NULL), STATUS_OK);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void say(const char *const *words)
{
    autobuf struct buf out = BUF_INIT(65536);
    struct redis_arg args[8];
    size_t count = 0;
    for (; words[count] != NULL; count++) {
        args[count] = redis_word(words[count]);
    }
    ck_assert_int_eq(redis_command(&out, args, count, NULL), STATUS_OK);
    const struct redis_request r = {.bytes = buf_at(&out),
                                    .len = out.len,
                                    .reply_count = 1,
                                    .timeout_us = LIMIT_US,
                                    .on_reply = on_reply,
                                    .on_done = on_done,
                                    .ctx = t.reply[0]};
    ck_assert_int_eq(redis_node_send(node, &r, NULL), STATUS_OK);
}

static const char *name_of(char *out, size_t size, const char *kind, const char *name)
{
    (void)snprintf(out, size, P "%s%s", kind, name);
    return out;
}

/* ---- the model ---- */

static size_t draw(size_t below)
{
    t.random ^= t.random << 13;
    t.random ^= t.random >> 7;
    t.random ^= t.random << 17;
    return (size_t)(t.random >> 16) % below;
}

/* Sessions are shared by all keys. */
static void share_sessions(size_t of)
{
    for (size_t i = 0; i < KEYS; i++) {
        t.nodes[i].alive = t.nodes[of].alive;
        t.nodes[i].has_any = t.nodes[of].has_any;
    }
}

static void expect_messages(uint8_t clients, const char *ms)
{
    for (size_t c = 0; c < CLIENTS; c++) {
        if ((clients & client_bit(c)) != 0) {
            struct heard *h = &t.heard[c];
            h->expected_len +=
                (size_t)snprintf(h->expected + h->expected_len,
                                 sizeof h->expected - h->expected_len, "%s:%s\n", ms, t.values[c]);
        }
    }
}

static const char *owner_text(size_t key)
{
    uint8_t owner = t.nodes[key].owner;
    return owner == OWNER_NOBODY    ? ""
           : owner == OWNER_FOREIGN ? foreign_values[t.foreign[key]]
                                    : t.values[owner - OWNER_FIRST];
}

/* Writes the state in the form of script_look. */
static void write_state(char *out, size_t size)
{
    size_t used = 0;
    for (size_t k = 0; k < KEYS; k++) {
        const struct line_node *n = &t.nodes[k];
        const char *kind = n->owner == OWNER_NOBODY ? "" : n->is_lease ? " lease" : " offer";
        used += (size_t)snprintf(out + used, size - used, "(%s%s line ", owner_text(k), kind);
        bool is_first = true;
        for (size_t c = 0; c < CLIENTS; c++) {
            if ((n->line & client_bit(c)) != 0) {
                used += (size_t)snprintf(out + used, size - used, "%s%s", is_first ? "" : " ",
                                         t.values[c]);
                is_first = false;
            }
        }
        used += (size_t)snprintf(out + used, size - used, " away %d turns %d foreign %d)",
                                 n->is_away, n->turns, n->foreign);
    }
    used += (size_t)snprintf(out + used, size - used, " any %d alive", t.nodes[0].has_any);
    for (size_t c = 0; c < CLIENTS; c++) {
        used += (size_t)snprintf(out + used, size - used, " %d",
                                 (t.nodes[0].alive & client_bit(c)) != 0);
    }
}

/* ---- events ---- */

static void do_enter(size_t k, size_t c)
{
    struct line_node *n = &t.nodes[k];
    call(&script_enter, t.reply[0], WORDS(keys[k], "canary"),
         WORDS(P, t.values[c], t.scores[c], LEASE_MS, OFFER_MS, LEASE_MS));
    t.may_end[k] = t.may_end[k] || n->foreign == FOREIGN_HAS_IT;
    struct node_reply r = node_enter(n, c, false);
    share_sessions(k);
    if (r.answer == owner_of(c)) {
        static const int gaps[] = {[GAP_NONE] = 0, [GAP_NEAR] = -1, [GAP_DUE] = 250};
        (void)snprintf(t.expected, sizeof t.expected, "[1,c,%d]", gaps[r.gap]);
    } else {
        (void)snprintf(t.expected, sizeof t.expected, "[0,c,%s,%s,%d]", owner_text(k),
                       n->is_lease ? "lease" : "short", r.rank);
    }
    expect_messages(r.offered, "0");
}

static size_t leave_one(size_t k, size_t c, bool has_gap, bool tells, size_t *offers)
{
    struct node_reply r = node_leave(&t.nodes[k], c, has_gap, tells);
    expect_messages(r.offered, "0");
    expect_messages(r.told, has_gap ? "25" : "60005");
    *offers += r.offered != 0 || (has_gap && r.was_mine);
    return r.was_mine;
}

/* Leaves both keys or one; with one token for all, or one for each. */
static void do_leave(size_t k, size_t c)
{
    bool has_gap = draw(3) == 0;
    bool tells = draw(2) == 0;
    bool is_both = draw(2) == 0;
    size_t other = draw(2) == 0 ? c : draw(CLIENTS);
    size_t offers = 0;
    const char *gap = has_gap ? GAP_MS : "0";
    const char *told = tells ? "1" : "0";
    if (!is_both) {
        call(&script_leave, t.reply[0], WORDS(keys[k], P "any"),
             WORDS(P, OFFER_MS, gap, told, t.values[c]));
        bool was_owned = t.nodes[k].owner != OWNER_NOBODY;
        size_t mine = leave_one(k, c, has_gap, tells, &offers);
        (void)snprintf(t.expected, sizeof t.expected, "[%zu,%zu%s]", mine, offers,
                       mine > 0    ? ""
                       : was_owned ? ",1"
                                   : ",-1");
        return;
    }
    call(&script_leave, t.reply[0], WORDS(keys[k], keys[1 - k], P "any"),
         other == c ? WORDS(P, OFFER_MS, gap, told, t.values[c])
                    : WORDS(P, OFFER_MS, gap, told, t.values[c], t.values[other]));
    bool first_owned = t.nodes[k].owner != OWNER_NOBODY;
    bool second_owned = t.nodes[1 - k].owner != OWNER_NOBODY;
    size_t first = leave_one(k, c, has_gap, tells, &offers);
    size_t second = leave_one(1 - k, other, has_gap, tells, &offers);
    (void)snprintf(t.expected, sizeof t.expected, "[%zu,%zu%s%s]", first + second, offers,
                   first > 0     ? ""
                   : first_owned ? ",1"
                                 : ",-1",
                   second > 0     ? ""
                   : second_owned ? ",2"
                                  : ",-2");
}

static void do_yield(size_t k, size_t c)
{
    uint8_t to = (uint8_t)draw(CLIENTS + 1);
    to = to == owner_of(c) ? OWNER_NOBODY : to;
    call(&script_yield, t.reply[0], WORDS(keys[k]),
         WORDS(P, t.values[c], t.scores[c], OFFER_MS,
               to == OWNER_NOBODY ? "" : t.values[to - OWNER_FIRST], LEASE_MS));
    struct node_reply r = node_yield(&t.nodes[k], c, to);
    share_sessions(k);
    (void)snprintf(t.expected, sizeof t.expected, "%d", r.code);
    expect_messages(r.offered, "0");
}

static void do_refresh(size_t k, size_t c)
{
    call(&script_refresh, t.reply[0], WORDS(keys[k], keys[1 - k]),
         WORDS(P, t.clients[c], LEASE_MS, OFFER_MS, t.values[c], t.scores[c], t.values[c],
               t.scores[c]));
    size_t used = 0;
    for (size_t i = 0; i < KEYS; i++) {
        size_t at = i == 0 ? k : 1 - k;
        struct node_reply r = node_refresh(&t.nodes[at], c);
        share_sessions(at);
        expect_messages(r.offered, "0");
        used += (size_t)snprintf(t.expected + used, sizeof t.expected - used, "%s%s",
                                 i == 0 ? "[" : ",",
                                 r.code > 0    ? "short"
                                 : r.code == 0 ? "0"
                                               : "-1");
    }
    (void)snprintf(t.expected + used, sizeof t.expected - used, "]");
}

static void do_set(size_t k, size_t c)
{
    bool is_foreign = draw(2) == 0;
    struct line_node *n = &t.nodes[k];
    size_t foreign = draw(ARRAY_COUNT(foreign_values));
    const char *value = is_foreign ? foreign_values[foreign] : t.values[c];
    say(WORDS("SET", keys[k], value, "NX", "PX", LEASE_MS));
    bool is_free = n->owner == OWNER_NOBODY;
    if (is_free) {
        (void)node_set(n, c);
        n->owner = is_foreign ? OWNER_FOREIGN : n->owner;
        t.foreign[k] = foreign;
    }
    (void)snprintf(t.expected, sizeof t.expected, is_free ? "OK" : "nil");
}

static void expect_deleted(bool was_there)
{
    (void)snprintf(t.expected, sizeof t.expected, "%d", was_there);
}

/* Something expires or gets lost. */
static void do_end(size_t k, size_t c)
{
    struct line_node *n = &t.nodes[k];
    char name[64];
    switch (draw(9)) {
    case 0:
        expect_deleted(n->owner != OWNER_NOBODY);
        say(WORDS("DEL", keys[k]));
        node_expire(n);
        return;
    case 1:
    case 6:
    case 7:
    case 8:
        expect_deleted((n->alive & client_bit(c)) != 0);
        say(WORDS("DEL", name_of(name, sizeof name, "alive:", t.clients[c])));
        n->alive &= (uint8_t)~client_bit(c);
        share_sessions(k);
        return;
    case 2:
        expect_deleted(n->is_away);
        say(WORDS("DEL", name_of(name, sizeof name, "away:", keys[k])));
        n->is_away = false;
        return;
    case 3:
        (void)snprintf(t.expected, sizeof t.expected, n->turns != TURNS_NONE ? "OK" : "nil");
        say(WORDS("SET", name_of(name, sizeof name, "turns:", keys[k]), "0", "XX"));
        n->turns = n->turns != TURNS_NONE ? TURNS_OVER : TURNS_NONE;
        return;
    case 4:
        expect_deleted(n->line != 0);
        say(WORDS("DEL", name_of(name, sizeof name, "line:", keys[k])));
        n->line = 0;
        return;
    default:
        expect_deleted(n->has_any);
        say(WORDS("DEL", P "any"));
        n->has_any = false;
        share_sessions(k);
    }
}

static void do_something(size_t k, size_t c)
{
    static const struct {
        size_t weight;
        void (*happens)(size_t k, size_t c);
    } things[] = {{6, do_enter},   {3, do_leave}, {2, do_yield},
                  {3, do_refresh}, {2, do_set},   {3, do_end}};
    size_t at = draw(19);
    size_t what = 0;
    for (; at >= things[what].weight; what++) {
        at -= things[what].weight;
    }
    /* An owner leaves and yields more often than others. */
    if ((what == 1 || what == 2) && is_client(t.nodes[k].owner) && draw(4) > 0) {
        c = (size_t)(t.nodes[k].owner - OWNER_FIRST);
    }
    things[what].happens(k, c);
}

/* Turns that follow a foreign client's end within half a second, and the test may look later than
 * that. */
static void end_short_turns(void)
{
    for (size_t k = 0; k < KEYS; k++) {
        const char *at = t.reply[1];
        for (size_t i = 0; i <= k && at != NULL; i++) {
            at = strstr(at + (i > 0), " turns ");
        }
        ck_assert_ptr_nonnull(at);
        if (t.may_end[k] && strncmp(at, " turns 2", 8) == 0) {
            t.nodes[k].turns = TURNS_OVER;
        }
        t.may_end[k] = false;
    }
}

static void step(size_t number)
{
    char before[TEXT_MAX];
    char after[TEXT_MAX];
    write_state(before, sizeof before);
    t.done = 0;
    do_something(draw(KEYS), draw(CLIENTS));
    call(&script_look, t.reply[1], keys, look_args);
    run_until(t.done == 2);
    end_short_turns();
    write_state(after, sizeof after);
    ck_assert_msg(strcmp(t.reply[0], t.expected) == 0, "step %zu of %s: got %s, expected %s",
                  number, before, t.reply[0], t.expected);
    ck_assert_msg(strcmp(t.reply[1], after) == 0, "step %zu of\n%s: got\n%s, expected\n%s", number,
                  before, t.reply[1], after);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void make_clients(void)
{
    look_args[0] = P;
    for (size_t c = 0; c < CLIENTS; c++) { /* the order of values is not that of scores */
        int64_t score = 1700000000000000 + (int64_t)(c / 2); /* two clients have equal scores */
        memset(t.values[c], (int)((c / 2 == 0 ? 'x' : 'a') + c), REDLOCK_TOKEN_LEN);
        line_write_score(t.values[c], score);
        memcpy(t.values[c] + REDLOCK_TOKEN_LEN, labels[c], strlen(labels[c]));
        (void)snprintf(t.clients[c], sizeof t.clients[c], "%.*s", REDLOCK_PREFIX_LEN, t.values[c]);
        (void)snprintf(t.scores[c], sizeof t.scores[c], "%" PRId64, score);
        look_args[1 + c] = t.clients[c];
    }
}

static void setup(void)
{
    char dir[SERVER_PATH_MAX + 32];
    struct err err = {0};
    make_clients();
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_timer_init(&loop, &tick), 0);
    (void)uv_timer_start(&tick, on_tick, 5, 5);
    (void)snprintf(dir, sizeof dir, "%s/%d", base_dir, (int)getpid());
    ck_assert_msg(redis_server_start(dir, NULL, &server, &err) == STATUS_OK, "%s", err.msg);
    struct redis_options o = {.loop = &loop,
                              .connect_timeout_us = LIMIT_US,
                              .scripts = scripts,
                              .script_count = ARRAY_COUNT(scripts),
                              .on_up = on_up};
    (void)snprintf(o.endpoint.path, sizeof o.endpoint.path, "%s", server.path);
    ck_assert_int_eq(redis_node_open(&o, &node, NULL), STATUS_OK);
    for (size_t c = 0; c < CLIENTS; c++) {
        char *channel = t.heard[c].channel;
        (void)name_of(channel, sizeof t.heard[c].channel, "to:", t.clients[c]);
        const struct redis_subscriber_options s = {.loop = &loop,
                                                   .endpoint = o.endpoint,
                                                   .channel = channel,
                                                   .channel_len = strlen(channel),
                                                   .connect_timeout_us = LIMIT_US,
                                                   .on_message = on_message,
                                                   .on_subscribed = on_subscribed,
                                                   .ctx = &t.heard[c]};
        ck_assert_int_eq(redis_subscriber_open(&s, &subs[c], NULL), STATUS_OK);
    }
    run_until(t.ups == 1 && t.subscribed == CLIENTS);
}

static void teardown(void)
{
    redis_node_close(node);
    for (size_t c = 0; c < CLIENTS; c++) {
        redis_subscriber_close(subs[c]);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* no handle is left open */
    redis_server_stop(&server);
}

START_TEST(L1_L9_the_scripts_do_what_the_model_does)
{
    size_t all = 0;
    t.random = 0x9E3779B97F4A7C15 * ((uint64_t)_i + 1);
    t.done = 0;
    say(WORDS("SET", "canary", "c"));
    for (size_t i = 0; i < STEPS; i++) {
        run_until(t.done > 0);
        step(i);
    }
    for (size_t c = 0; c < CLIENTS; c++) {
        const struct heard *h = &t.heard[c];
        run_until(h->messages_len >= h->expected_len);
        ck_assert_str_eq(h->messages, h->expected);
        all += h->messages_len;
    }
    ck_assert_uint_gt(all, 0);
}
END_TEST

static int line_count(void)
{
    return getenv("CLAIMD_SOAK") != NULL ? 40 * HISTORIES : HISTORIES;
}

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, L1_L9_the_scripts_do_what_the_model_does, 0, line_count());
}

int main(void)
{
    const struct suite_in_dir in = {.name = "redlock_line_scripts",
                                    .ret_dir = base_dir,
                                    .dir_size = sizeof base_dir,
                                    .timeout_s = 120,
                                    .setup = setup,
                                    .teardown = teardown,
                                    .add_tests = add_tests};
    return suite_run_in_dir(&in);
}
