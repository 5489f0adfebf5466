/* SPDX-License-Identifier: Apache-2.0
 *
 * What nodes may answer, from arbitrary bytes: three stub servers on the client's own loop greet it
 * properly (or not), and then answer each thing it sends with the next piece of the input, through
 * an acquisition, extending, fencing, inspecting, releasing and breaking. A stub whose input is at
 * its end closes its connection. Found are crashes, leaks, hangs, keys that are won without a
 * quorum, and labels of others that are not fit to be shown.
 *
 * Input: one byte of flags, then pieces: a byte with the length, and so many bytes. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "redlock/redlock_async.h"

#include <signal.h>
#include <stdio.h>
#include <uv.h>

#define NODES 3
#define KEYS 2
#define STEP_US_MAX (10 * US_PER_MS)

enum flags { BAD_GREETING = 1, NATIVE = 2, WAKEUPS = 4, HOLDER_TTL = 8, WAITS = 16, LABEL = 32 };

struct stub {
    uv_pipe_t pipe;
    struct stub *next; /* of those that are open */
    size_t node;
    bool has_told_canary;
    struct buf unread;
};

static uv_loop_t loop;
static uv_timer_t clock_tick;
static uv_pipe_t servers[NODES];
static char paths[NODES][96];
static struct stub *stubs;
static size_t closing_count;
static struct {
    const uint8_t *at;
    size_t left;
    unsigned flags;
} input;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the servers ---- */

static void on_stub_closed(uv_handle_t *handle)
{
    struct stub *s = handle->data;
    buf_release(&s->unread);
    free(s);
    closing_count--;
}

static void stub_close(struct stub *s)
{
    struct stub **at = &stubs;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    closing_count++;
    uv_close((uv_handle_t *)&s->pipe, on_stub_closed);
}

/* What does not fit into the socket at once is lost: so small a reply always fits. */
static void say(struct stub *s, const void *bytes, size_t len)
{
    char copy[1024];
    if (len > 0 && len <= sizeof copy) {
        memcpy(copy, bytes, len);
        uv_buf_t out = uv_buf_init(copy, (unsigned)len);
        (void)uv_try_write((uv_stream_t *)&s->pipe, &out, 1);
    }
}

static void say_info(struct stub *s)
{
    char text[512];
    char reply[600];
    int len = snprintf(text, sizeof text,
                       "redis_version:%s\r\nrun_id:%040zu\r\nuptime_in_seconds:999999\r\n"
                       "maxmemory:0\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n"
                       "connected_slaves:0\r\ncluster_enabled:0\r\n",
                       (input.flags & NATIVE) != 0 ? "8.6.0" : "7.0.0", s->node);
    int all = snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", len, text);
    say(s, reply, (size_t)all);
}

/* The value of lock.N9's key: in the answer to the first script, and behind each acquisition. */
static void say_canary(struct stub *s, bool has_time)
{
    char value[64];
    char reply[128];
    int len = snprintf(value, sizeof value, "%040zu:1:x", s->node);
    int all = snprintf(reply, sizeof reply, "*%d\r\n$%d\r\n%s\r\n%s", has_time ? 2 : 1, len, value,
                       has_time ? "$7\r\n1000000\r\n" : "");
    say(s, reply, (size_t)all);
}

static void say_to_greeting(struct stub *s, const char *word)
{
    static const char sha[] = "$40\r\n0123456789012345678901234567890123456789\r\n";
    static const char native[] = "*2\r\n*1\r\n+delifeq\r\n*1\r\n+delex\r\n";
    static const char no_native[] = "*2\r\n*-1\r\n*-1\r\n";
    if (strcmp(word, "INFO") == 0) {
        say_info(s);
    } else if (strcmp(word, "SCRIPT") == 0) {
        say(s, sha, sizeof sha - 1);
    } else if (strcmp(word, "CLIENT") == 0) {
        say(s, ":7\r\n", 4);
    } else if ((input.flags & NATIVE) != 0) {
        say(s, native, sizeof native - 1);
    } else {
        say(s, no_native, sizeof no_native - 1);
    }
}

/* The nodes say the same but for '@', which is the node's digit, as in its canary. False = the
 * input is at its end. */
static bool say_next(struct stub *s)
{
    if (input.left == 0) {
        return false;
    }
    size_t len = *input.at++;
    input.left--;
    len = len < input.left ? len : input.left;
    char text[UINT8_MAX];
    for (size_t i = 0; i < len; i++) {
        text[i] = (char)(input.at[i] == '@' ? '0' + s->node : input.at[i]);
    }
    say(s, text, len);
    input.at += len;
    input.left -= len;
    return true;
}

static bool is_greeting(const char *word)
{
    static const char *const words[] = {"INFO", "SCRIPT", "CLIENT", "COMMAND"};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes one line "*N" or "$N" off the head; −1 = not there. */
static int64_t take_count(struct buf *in, size_t *at)
{
    const char *line = buf_at(in) + *at;
    const char *eol = *at < in->len ? memchr(line, '\n', in->len - *at) : NULL;
    int64_t number = -1;
    if (eol == NULL || eol - line < 3 ||
        parse_i64(line + 1, (size_t)(eol - line) - 2, 0, 1 << 20, &number, NULL) != STATUS_OK) {
        return -1;
    }
    *at += (size_t)(eol - line) + 1;
    return number;
}

/* The first word of the next command; false = not whole yet. */
static bool take_command(struct buf *in, char *ret_word, size_t size)
{
    size_t at = 0;
    int64_t words = in->len > 0 ? take_count(in, &at) : -1;
    if (words < 0) {
        return false;
    }
    for (int64_t i = 0; i < words; i++) {
        int64_t len = take_count(in, &at);
        if (len < 0 || in->len < at + (size_t)len + 2) {
            return false;
        }
        if (i == 0) {
            (void)snprintf(ret_word, size, "%.*s", (int)len, buf_at(in) + at);
        }
        at += (size_t)len + 2;
    }
    buf_consume(in, at);
    return true;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    static char bytes[65536];
    (void)handle;
    (void)suggested;
    *ret_buf = uv_buf_init(bytes, sizeof bytes);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes)
{
    struct stub *s = stream->data;
    bool is_asked = false;
    bool wants_canary = false;
    char word[16] = "";
    if (count < 0 || buf_append(&s->unread, bytes->base, (size_t)count, NULL) != STATUS_OK) {
        stub_close(s);
        return;
    }
    while (take_command(&s->unread, word, sizeof word)) {
        if ((input.flags & BAD_GREETING) == 0 && is_greeting(word)) {
            say_to_greeting(s, word);
        } else if ((input.flags & BAD_GREETING) == 0 && !s->has_told_canary &&
                   strcmp(word, "EVALSHA") == 0) {
            s->has_told_canary = true;
            say_canary(s, true);
        } else if (strcmp(word, "MGET") == 0) {
            wants_canary = true;
        } else {
            is_asked = true;
        }
    }
    if (is_asked && !say_next(s)) {
        stub_close(s);
    } else if (wants_canary) {
        say_canary(s, false);
    }
}

static void on_client(uv_stream_t *server, int uv_status)
{
    struct stub *s = uv_status == 0 ? calloc(1, sizeof *s) : NULL;
    if (s == NULL) {
        return;
    }
    s->node = (size_t)((uv_pipe_t *)server - servers);
    buf_init(&s->unread, (size_t)1 << 20);
    (void)uv_pipe_init(&loop, &s->pipe, 0);
    s->pipe.data = s;
    s->next = stubs;
    stubs = s;
    if (uv_accept(server, (uv_stream_t *)&s->pipe) != 0 ||
        uv_read_start((uv_stream_t *)&s->pipe, on_alloc, on_read) != 0) {
        stub_close(s);
    }
}

/* ---- the client ---- */

static struct {
    struct redlock_batch *batch;
    size_t done;
} seen;

static void on_tick(uv_timer_t *timer)
{
    (void)timer; /* the loop never blocks for long */
}

static void remove_paths(void)
{
    for (size_t i = 0; i < NODES; i++) {
        (void)unlink(paths[i]);
    }
}

static void start_once(void)
{
    static bool is_started;
    if (is_started) {
        return;
    }
    is_started = true;
    const char *own = getenv("TMPDIR");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)uv_loop_init(&loop);
    (void)uv_timer_init(&loop, &clock_tick);
    (void)uv_timer_start(&clock_tick, on_tick, 1, 1);
    for (size_t i = 0; i < NODES; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%.60s/fuzz-redlock-%d-%zu",
                       own != NULL ? own : "/tmp", (int)getpid(), i);
        (void)uv_pipe_init(&loop, &servers[i], 0);
        if (uv_pipe_bind(&servers[i], paths[i]) != 0 ||
            uv_listen((uv_stream_t *)&servers[i], 16, on_client) != 0) {
            abort();
        }
    }
    (void)atexit(remove_paths);
}

static void run_while_fewer(size_t done, int64_t us_max)
{
    int64_t end_us = clock_boot_us() + us_max;
    while (seen.done < done && clock_boot_us() < end_us) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
}

static void keep_won(struct redlock_batch *batch, size_t index)
{
    size_t votes = 0;
    for (size_t node = 0; node < NODES; node++) {
        votes += redlock_batch_vote(batch, index, node) == REDLOCK_VOTE_OK;
    }
    if (votes <= NODES / 2) {
        abort(); /* won without a quorum */
    }
    seen.batch = batch;
}

/* Of REDLOCK_LABEL_LEN_MAX characters at most. */
static void check_shown(const char *label)
{
    size_t len = 0;
    for (; label[len] != '\0'; len++) {
        if (len == REDLOCK_LABEL_LEN_MAX || label[len] < ' ' || label[len] > '~') {
            abort();
        }
    }
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    (void)ctx;
    seen.done++;
    for (size_t i = 0; i < KEYS; i++) {
        check_shown(redlock_batch_holder(batch, i));
        if (redlock_batch_result(batch, i) == REDLOCK_OK) {
            keep_won(batch, i);
        }
    }
}

static void on_waited(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    (void)ctx;
    (void)tries;
    seen.done++;
    if (batch != NULL) {
        check_shown(redlock_batch_holder(batch, 0));
    }
    if (result == REDLOCK_OK) {
        keep_won(batch, 0);
    }
}

static void on_extended(void *ctx, enum redlock_result result)
{
    (void)ctx;
    (void)result;
    seen.done++;
}

static void on_fenced(void *ctx, uint64_t fence)
{
    (void)ctx;
    (void)fence;
    seen.done++;
}

static void on_inspected(void *ctx, const struct redlock_holding *holdings)
{
    (void)ctx;
    for (size_t i = 0; i < NODES; i++) {
        if (strnlen(holdings[i].holder, sizeof holdings[i].holder) == sizeof holdings[i].holder) {
            abort();
        }
        check_shown(holdings[i].label);
    }
    seen.done++;
}

static void on_broken(void *ctx, const struct redlock_released *r)
{
    (void)ctx;
    if (r->deleted + r->stolen + r->missing + r->unknown != NODES) {
        abort();
    }
    seen.done++;
}

static void on_released(void *ctx, const struct redlock_released *released)
{
    (void)ctx;
    (void)released;
    seen.done++;
}

static void count_done(void *ctx)
{
    (void)ctx;
    seen.done++;
}

static void use_won(struct redlock_batch *batch)
{
    for (size_t i = 0; i < redlock_batch_count(batch); i++) {
        if (redlock_batch_result(batch, i) == REDLOCK_OK) {
            size_t done = seen.done;
            if (redlock_batch_extend(batch, i, on_extended, NULL) == 0) {
                run_while_fewer(done + 1, STEP_US_MAX);
            }
            done = seen.done;
            if (redlock_batch_fence(batch, i, 1, on_fenced, NULL) == 0) {
                run_while_fewer(done + 1, STEP_US_MAX);
            }
        }
    }
    for (size_t i = 0, count = redlock_batch_count(batch); i < count; i++) {
        if (redlock_batch_result(batch, i) == REDLOCK_OK) {
            size_t done = seen.done;
            redlock_batch_release_tell(batch, i, on_released, NULL);
            run_while_fewer(done + 1, STEP_US_MAX);
        }
    }
}

static int start(struct redlock_async *lock, const struct redlock_async_request *request)
{
    struct redlock_async_request one = *request;
    struct redlock_wait *wait = NULL;
    const struct redlock_wait_options options = {.deadline_us = clock_boot_us() + 3 * STEP_US_MAX,
                                                 .done = on_waited};
    if ((input.flags & WAITS) == 0) {
        return redlock_async_acquire(lock, request, NULL);
    }
    one.count = 1;
    return redlock_async_wait(lock, &one, &options, &wait, NULL);
}

static void use(struct redlock_async *lock)
{
    static const struct redlock_async_key keys[KEYS] = {{.bytes = "a", .len = 1},
                                                        {.bytes = "b", .len = 1}};
    const struct redlock_async_request request = {.keys = keys,
                                                  .count = KEYS,
                                                  .wants_holder_ttl =
                                                      (input.flags & HOLDER_TTL) != 0,
                                                  .done = on_acquired};
    int64_t end_us = clock_boot_us() + STEP_US_MAX;
    while (redlock_async_voting(lock) < NODES && clock_boot_us() < end_us && input.left > 0) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    seen.batch = NULL;
    seen.done = 0;
    if (start(lock, &request) == 0) {
        run_while_fewer(1, INT64_C(500) * STEP_US_MAX);
        if (seen.done == 0) {
            abort(); /* no verdict */
        }
    }
    if (seen.batch != NULL) {
        use_won(seen.batch);
    }
    size_t done = seen.done;
    if (redlock_async_inspect(lock, "a", 1, on_inspected, NULL) == 0) {
        run_while_fewer(done + 1, STEP_US_MAX);
    }
    done = seen.done;
    if (redlock_async_break(lock, "a", 1, on_broken, NULL) == 0) {
        run_while_fewer(done + 1, STEP_US_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char urls[NODES][112];
    struct redlock_node nodes[NODES] = {{0}};
    struct redlock_async *lock = NULL;
    start_once();
    if (size == 0) {
        return 0;
    }
    input.flags = data[0];
    input.at = data + 1;
    input.left = size - 1;
    for (size_t i = 0; i < NODES; i++) {
        (void)snprintf(urls[i], sizeof urls[i], "unix:%.95s", paths[i]);
        nodes[i].url = urls[i];
    }
    const struct redlock_async_options options = {.loop = &loop,
                                                  .nodes = nodes,
                                                  .node_count = NODES,
                                                  .ttl_us = US_PER_S,
                                                  .ttl_max_us = US_PER_S,
                                                  .node_timeout_us = US_PER_MS,
                                                  .drift_ppm = 10000,
                                                  .trust_fresh = true,
                                                  .label =
                                                      (input.flags & LABEL) != 0 ? "label" : NULL,
                                                  .no_line = (input.flags & WAKEUPS) == 0};
    if (redlock_async_open(&options, &lock, NULL) != 0) {
        abort();
    }
    use(lock);
    seen.done = 0;
    redlock_async_close(lock, count_done, NULL);
    run_while_fewer(1, INT64_C(500) * STEP_US_MAX);
    if (seen.done != 1) {
        abort(); /* it doesn't end */
    }
    while (stubs != NULL) {
        stub_close(stubs);
    }
    while (closing_count > 0) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    return 0;
}
