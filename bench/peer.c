/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/peer.h"

#include "base/clock.h"
#include "bench/process.h"
#include "cluster/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#define LINE_MAX_BYTES ((size_t)4 << 20)
#define ANSWER_US (900 * US_PER_S)
#define END_US (60 * US_PER_S)
#define LOOK_US (2 * US_PER_MS)
#define ARGS_MAX 10
#define MISSING "missing "

/* A process whose stdin and stdout are connected to us. */
struct adapter {
    pid_t pid;
    int in_fd;
    int out_fd;
    char dir[SERVER_PATH_MAX + 16];
    char log[SERVER_PATH_MAX + 16];
};

static enum status adapter_spawn(struct adapter *a, const char *const *argv, struct err *err)
{
    static const char *const env[] = {"PYTHONDONTWRITEBYTECODE=1", NULL};
    int in[2] = {-1, -1};
    int out[2] = {-1, -1};
    autoclose int log_fd = open(a->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_fd < 0 || pipe2(in, O_CLOEXEC) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "files of %s", argv[0]);
    }
    autoclose int in_fd = in[0];
    a->in_fd = in[1];
    if (pipe2(out, O_CLOEXEC) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "files of %s", argv[0]);
    }
    autoclose int out_fd = out[1];
    a->out_fd = out[0];
    if (fcntl(a->out_fd, F_SETFL, O_NONBLOCK) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "files of %s", argv[0]);
    }
    const struct child_spec spec = {.argv = argv,
                                    .env = env,
                                    .in_fd = in_fd,
                                    .out_fd = out_fd,
                                    .err_fd = log_fd,
                                    .death_signal = SIGKILL};
    return child_start(&spec, &a->pid, err);
}

static enum status adapter_start(struct adapter *a, const struct cluster *c,
                                 const struct peer_plan *plan, const char *conninfo,
                                 struct err *err)
{
    char count[24];
    const char *argv[ARGS_MAX] = {NULL};
    size_t n = 0;
    (void)snprintf(a->dir, sizeof a->dir, "%s/peer", c->dir);
    (void)snprintf(a->log, sizeof a->log, "%s/peer.log", c->dir);
    (void)snprintf(count, sizeof count, "%lld", (long long)plan->count);
    enum status st = dir_ensure(a->dir, 0755, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; plan->argv[i] != NULL; i++) {
        argv[n++] = plan->argv[i];
    }
    const char *const words[] = {plan->work, plan->settings,    count,     a->dir,
                                 conninfo,   plan->redis->path, plan->load};
    memcpy(&argv[n], words, sizeof words);
    return adapter_spawn(a, argv, err);
}

/* Ends the adapter and everything it has left in its process group. */
static enum status adapter_end(struct adapter *a, struct err *err)
{
    int code = -1;
    enum status st = STATUS_OK;
    if (a->in_fd >= 0) {
        (void)close(a->in_fd);
    }
    if (a->pid > 0) {
        st = program_wait(a->pid, END_US, &code, err);
        (void)kill(-a->pid, SIGKILL);
        program_kill(a->pid);
    }
    if (a->out_fd >= 0) {
        (void)close(a->out_fd);
    }
    dir_remove(a->dir);
    if (st == STATUS_OK && a->pid > 0 && code != 0) {
        return err_fail(err, STATUS_INTERNAL, "its adapter ended with %d", code);
    }
    return st;
}

/* Reads a line; `line` has no newline. */
static enum status read_line(struct cluster *c, const struct adapter *a, struct buf *line,
                             struct err *err)
{
    int64_t end_us = clock_boot_us() + ANSWER_US;
    buf_reset(line);
    while (clock_boot_us() < end_us) {
        char chunk[4096];
        ssize_t n = read(a->out_fd, chunk, sizeof chunk);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            return err_fail(err, STATUS_INTERNAL, "its adapter has ended early");
        }
        enum status st =
            n < 0 ? cluster_wait(c, LOOK_US, err) : buf_append(line, chunk, (size_t)n, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (n > 0 && chunk[n - 1] == '\n') {
            buf_cut(line, line->len - 1);
            return STATUS_OK;
        }
    }
    return err_fail(err, STATUS_TIMEOUT, "its adapter says nothing");
}

static int64_t cpu_us(const struct cluster *c, const struct adapter *a,
                      const struct redis_server *redis)
{
    const pid_t pids[] = {a->pid, c->pg.pid, redis->pid};
    int64_t us = 0;
    for (size_t i = 0; i < ARRAY_COUNT(pids); i++) {
        struct process_cpu one = process_cpu(pids[i]);
        us += one.self_us + one.children_us;
    }
    return us;
}

static enum status talk(struct cluster *c, const struct adapter *a, const struct peer_plan *plan,
                        struct peer_result *ret, struct err *err)
{
    autobuf struct buf line = BUF_INIT(LINE_MAX_BYTES);
    enum status st = read_line(c, a, &line, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (strncmp(buf_at(&line), MISSING, strlen(MISSING)) == 0) {
        (void)snprintf(ret->missing, sizeof ret->missing, "%s", buf_at(&line) + strlen(MISSING));
        return STATUS_OK;
    }
    if (strcmp(buf_at(&line), "ready") != 0) {
        return err_fail(err, STATUS_INTERNAL, "its adapter said '%.100s'", buf_at(&line));
    }
    int64_t cpu_before_us = cpu_us(c, a, plan->redis);
    int64_t began_us = clock_boot_us();
    if (write(a->in_fd, "go\n", 3) != 3) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "its adapter does not listen");
    }
    st = read_line(c, a, &line, err);
    if (st != STATUS_OK) {
        return st;
    }
    ret->took_us = clock_boot_us() - began_us;
    ret->cpu_us = cpu_us(c, a, plan->redis) - cpu_before_us;
    ret->said = json_loads(buf_at(&line), 0, NULL);
    return ret->said != NULL
               ? STATUS_OK
               : err_fail(err, STATUS_INTERNAL, "its adapter said '%.100s'", buf_at(&line));
}

static enum status run_with(struct cluster *c, const struct peer_plan *plan, const char *conninfo,
                            struct peer_result *ret, struct err *err)
{
    struct adapter a = {.in_fd = -1, .out_fd = -1};
    char tail[PEER_WHY_MAX] = "";
    enum status st = adapter_start(&a, c, plan, conninfo, err);
    if (st == STATUS_OK) {
        st = talk(c, &a, plan, ret, err);
    }
    enum status ended = adapter_end(&a, st == STATUS_OK ? err : NULL);
    st = st != STATUS_OK ? st : ended;
    if (st != STATUS_OK) {
        child_log_tail(a.log, tail, sizeof tail);
        (void)fprintf(stderr, "bench: the end of the adapter's log: %s\n", tail);
    }
    return st;
}

enum status peer_run(struct cluster *c, const struct peer_plan *plan, struct peer_result *ret,
                     struct err *err)
{
    static const char *const flush[] = {"FLUSHALL", NULL};
    autobuf struct buf out = BUF_INIT(4096);
    char conninfo[SERVER_PATH_MAX];
    *ret = (struct peer_result){0};
    enum status st = redis_server_ask(plan->redis, flush, &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = pg_server_create_db(&c->pg, "peer", NULL, conninfo, sizeof conninfo, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = run_with(c, plan, conninfo, ret, err);
    enum status dropped = pg_server_ask(&c->pg, "DROP DATABASE peer WITH (FORCE)", NULL, 0, NULL);
    if (st == STATUS_OK && dropped != STATUS_OK) {
        st = err_fail(err, dropped, "the peer's database was not dropped");
    }
    if (st != STATUS_OK) {
        json_decref(TAKE(ret->said));
    }
    return st;
}
