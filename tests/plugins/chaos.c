/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of the chaos kit's load: each does what its args say, {"n", "path", "do", "ms",
 * "until", "deaf"}, and keeps a ledger of it at `path` that shares nothing with claimd: one line
 * per event, CLOCK_BOOTTIME. The kinds differ in what is declared of them. */
#include "claimd/plugin.h"
#include "protocol/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <openssl/sha.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000
#define NS_PER_MS 1000000
#define STEP_MS 20
#define LINE_MAX_BYTES 512

struct task {
    json_t *args;
    const char *path;
    const char *does;
    json_int_t n;
    json_int_t v; /* which version of its args this is; 0 = they were never edited */
    json_int_t ms;
    json_int_t
        until;   /* attempts before this one do what `does` says, this one and later are done */
    int is_deaf; /* does not look at should_stop */
    char sha[2 * SHA256_DIGEST_LENGTH + 1]; /* of the args as they came */
};

static int64_t now_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void task_read(struct task *t, const struct claimd_context *job)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    (void)SHA256((const unsigned char *)job->args, job->args_len, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        (void)snprintf(t->sha + 2 * i, 3, "%02x", (unsigned)digest[i]);
    }
    t->args = json_loadb(job->args, job->args_len, 0, NULL);
    t->path = json_string_value(json_object_get(t->args, "path"));
    t->does = json_string_value(json_object_get(t->args, "do"));
    t->does = t->does != NULL ? t->does : "done";
    t->n = json_integer_value(json_object_get(t->args, "n"));
    t->v = json_integer_value(json_object_get(t->args, "v"));
    t->ms = json_integer_value(json_object_get(t->args, "ms"));
    t->until = json_integer_value(json_object_get(t->args, "until"));
    t->is_deaf = json_is_true(json_object_get(t->args, "deaf"));
}

/* One write() of one line to a file that is only appended to: it survives a kill -9 (GUARANTEES
 * 4.1). 0, or −1. */
static int note(const struct task *t, const struct claimd_context *job, const char *op,
                const char *as)
{
    char line[LINE_MAX_BYTES];
    int len = snprintf(line, sizeof line,
                       "{\"t\":%" PRId64 ",\"job\":%" PRId64 ",\"fence\":%" PRId64
                       ",\"attempt\":%" PRId32 ",\"op\":\"%s\",\"as\":\"%s\",\"n\":%" PRId64
                       ",\"v\":%" PRId64 ",\"kind\":\"%s\",\"pid\":%ld,\"sha\":\"%s\"}\n",
                       now_ns(), job->id, job->fence, job->attempt, op, as, (int64_t)t->n,
                       (int64_t)t->v, job->kind, (long)getpid(), t->sha);
    int fd = open(t->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int rc = fd >= 0 && write(fd, line, (size_t)len) == len ? 0 : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

/* 0 = the time is over, 1 = asked to stop before. */
static int work(const struct task *t, const struct claimd_context *job)
{
    int64_t end_ns = now_ns() + t->ms * NS_PER_MS;
    for (int64_t left_ns = end_ns - now_ns(); left_ns > 0; left_ns = end_ns - now_ns()) {
        int64_t left_ms = left_ns / NS_PER_MS + 1;
        (void)poll(NULL, 0, (int)(left_ms < STEP_MS ? left_ms : STEP_MS));
        if (!t->is_deaf && claimd_should_stop(job)) {
            return 1;
        }
    }
    return 0;
}

static void hang(void)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    for (;;) {
        (void)poll(NULL, 0, -1);
    }
}

/* Zeroes what its worker reads of it, and crashes: no place says any more which job began. */
static void scribble(void)
{
    struct runner_page *page =
        mmap(NULL, RUNNER_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, RUNNER_FD_PAGE, 0);
    if (page != MAP_FAILED) {
        memset(page, 0, offsetof(struct runner_page, ring));
    }
    (void)raise(SIGSEGV);
}

/* What an attempt before the last one does. */
static enum claimd_outcome fall(const struct task *t, const struct claimd_context *job)
{
    (void)note(t, job, "end", t->does);
    if (strcmp(t->does, "retry") == 0) {
        return claimd_retry(job, 100, "attempt %d is too early", (int)job->attempt);
    }
    if (strcmp(t->does, "far") == 0) { /* past what a row may say */
        return claimd_retry(job, INT64_C(10000000000000), "much later");
    }
    if (strcmp(t->does, "snooze") == 0) {
        return claimd_snooze(job, 0, "fence %" PRId64, job->fence);
    }
    if (strcmp(t->does, "cancel") == 0) {
        return claimd_cancel(job, "told to give up, attempt %d", (int)job->attempt);
    }
    if (strcmp(t->does, "segv") == 0) {
        (void)raise(SIGSEGV);
    } else if (strcmp(t->does, "scribble") == 0) {
        scribble();
    } else if (strcmp(t->does, "abort") == 0) {
        abort();
    } else if (strcmp(t->does, "exit") == 0) {
        exit(0);
    } else if (strcmp(t->does, "hang") == 0) {
        hang();
    }
    return claimd_fail(job, "told to fail, attempt %d", (int)job->attempt);
}

static enum claimd_outcome finish(const struct task *t, const struct claimd_context *job)
{
    char result[64];
    if (note(t, job, "effect", "done") != 0) {
        return claimd_retry(job, 100, "write %s: errno %d", t->path, errno);
    }
    (void)snprintf(result, sizeof result, "{\"n\": %" PRId64 ", \"fence\": %" PRId64 "}",
                   (int64_t)t->n, job->fence);
    (void)note(t, job, "end", "done");
    return claimd_done(job, result);
}

/* A snooze leaves the attempt as it was: the fence says when it is enough. */
static int is_last(const struct task *t, const struct claimd_context *job)
{
    if (strcmp(t->does, "snooze") == 0) {
        return job->fence % 3 == 0;
    }
    return strcmp(t->does, "done") == 0 || (t->until != 0 && job->attempt >= t->until);
}

static enum claimd_outcome handle(const struct claimd_context *job)
{
    struct task t = {0};
    enum claimd_outcome outcome = CLAIMD_FAIL;
    task_read(&t, job);
    if (t.path == NULL) {
        outcome = claimd_fail(job, "args need a path");
    } else if (note(&t, job, "start", t.does) != 0) {
        outcome = claimd_retry(job, 100, "write %s: errno %d", t.path, errno);
    } else if (work(&t, job) != 0) {
        (void)note(&t, job, "end", "stopped");
        outcome = claimd_retry(job, -1, "asked to stop");
    } else if (is_last(&t, job)) {
        outcome = finish(&t, job);
    } else {
        outcome = fall(&t, job);
    }
    json_decref(t.args);
    return outcome;
}

/* Crashes of runners that the kit itself kills must not use up what an ordinary job has. */
#define MANY 1000

#ifdef CHAOS_KINDS
/* Of drawn worlds: they differ by name alone, and by how long the load has them work. */
#define ONE(number)                                                                     \
    {                                                                                   \
        .name = "k" number, .handle = handle, .max_attempts = MANY, .max_crashes = MANY \
    }
#define TEN(tens)                                                                             \
    ONE(tens "0"), ONE(tens "1"), ONE(tens "2"), ONE(tens "3"), ONE(tens "4"), ONE(tens "5"), \
        ONE(tens "6"), ONE(tens "7"), ONE(tens "8"), ONE(tens "9")

CLAIMD_PLUGIN(.name = "kinds", .version = "1.0",
              .kinds = {TEN("0"), TEN("1"), TEN("2"), TEN("3"), TEN("4")})
#else
CLAIMD_PLUGIN(.name = "chaos", .version = "1.0",
              .kinds = {
                  {.name = "c_short", .handle = handle, .max_attempts = MANY, .max_crashes = MANY},
                  {.name = "c_long", .handle = handle, .max_attempts = MANY, .max_crashes = MANY},
                  {.name = "c_big", .handle = handle, .max_attempts = MANY, .max_crashes = MANY},
                  {.name = "c_retry", .handle = handle, .max_attempts = MANY, .max_crashes = MANY},
                  {.name = "c_crash", .handle = handle, .max_attempts = MANY, .max_crashes = MANY},
                  {.name = "c_fail", .handle = handle, .max_attempts = MANY, .max_crashes = MANY},
                  {.name = "c_poison", .handle = handle, .max_attempts = MANY, .max_crashes = 2},
                  {.name = "c_tired", .handle = handle, .max_attempts = 3, .max_crashes = MANY},
                  {.name = "c_once", .handle = handle, .max_crashes = MANY, .at_most_once = 1},
                  {.name = "c_hang",
                   .handle = handle,
                   .timeout_ms = 1500,
                   .max_attempts = MANY,
                   .max_crashes = MANY}})
#endif
