/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of the soak: each does what its args say, {"n", "v", "do", "ms", "until"}, and keeps
 * a ledger in $TMPDIR/ledger.csv that shares nothing with claimd: a line per event, by the wall
 * clock, which is PostgreSQL's too. Built twice: SOAK_RARE for the kind that few workers serve. */
#include "claimd/plugin.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define US_PER_S 1000000
#define US_PER_MS 1000
#define STEP_MS 50
#define LINE_MAX_BYTES 256
#define MANY 1000 /* the soak's own kills must not use up what a job has */

struct task {
    char does[16];
    json_int_t n;
    json_int_t v; /* which version of its args this is */
    json_int_t ms;
    json_int_t until; /* attempts before this one do what `does` says */
};

static int64_t now_us(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

static int ledger(void)
{
    static int fd = -1;
    char path[PATH_MAX];
    const char *folder = getenv("TMPDIR");
    if (fd < 0 && folder != NULL &&
        snprintf(path, sizeof path, "%s/ledger.csv", folder) < (int)sizeof path) {
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    }
    return fd;
}

/* One write() of one line to a file that is only appended to: it survives a kill -9. 's' = starts,
 * 't' = still at it, 'd' = done, 'x' = ends otherwise. */
static int note(const struct task *t, const struct claimd_context *job, char event,
                const char *text)
{
    char line[LINE_MAX_BYTES];
    int len = snprintf(line, sizeof line,
                       "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId32 ",%c,%" JSON_INTEGER_FORMAT
                       ",%" JSON_INTEGER_FORMAT ",%ld,%ld,%s\n",
                       now_us(), job->id, job->fence, job->attempt, event, t->n, t->v,
                       (long)getppid(), (long)getpid(), text);
    return len < (int)sizeof line && write(ledger(), line, (size_t)len) == len ? 0 : -1;
}

static void task_read(struct task *t, const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    const char *does = json_string_value(json_object_get(args, "do"));
    (void)snprintf(t->does, sizeof t->does, "%s", does != NULL ? does : "done");
    t->n = json_integer_value(json_object_get(args, "n"));
    t->v = json_integer_value(json_object_get(args, "v"));
    t->ms = json_integer_value(json_object_get(args, "ms"));
    t->until = json_integer_value(json_object_get(args, "until"));
    json_decref(args);
}

/* Continues when asked to stop, unless its job is cancelled: its lines show if another run starts
 * before this one has ended. Returns 1 if cancelled. */
static int work(const struct task *t, const struct claimd_context *job)
{
    int64_t end_us = now_us() + t->ms * US_PER_MS;
    for (int64_t left_us = t->ms * US_PER_MS; left_us > 0; left_us = end_us - now_us()) {
        int64_t left_ms = left_us / US_PER_MS + 1;
        (void)poll(NULL, 0, (int)(left_ms < STEP_MS ? left_ms : STEP_MS));
        if (claimd_is_cancelled(job)) {
            return 1;
        }
        if (t->ms > STEP_MS) {
            (void)note(t, job, 't', "");
        }
    }
    return 0;
}

/* What an attempt before the last one does. */
static enum claimd_outcome fall(const struct task *t, const struct claimd_context *job)
{
    (void)note(t, job, 'x', t->does);
    if (strcmp(t->does, "retry") == 0) {
        return claimd_retry(job, -1, "attempt %d is too early", (int)job->attempt);
    }
    if (strcmp(t->does, "snooze") == 0) {
        return claimd_snooze(job, 0, "not now");
    }
    if (strcmp(t->does, "crash") == 0) {
        (void)raise(SIGKILL);
    }
    if (strcmp(t->does, "steps") == 0) {
        char at[32];
        (void)snprintf(at, sizeof at, "{\"at\": %d}", (int)job->attempt);
        (void)claimd_progress(job, (int)(job->attempt * 10), "on its way");
        (void)claimd_checkpoint(job, at);
        return claimd_retry(job, 0, "the next step");
    }
    return claimd_fail(job, "told to fail");
}

/* A snooze leaves the attempt as it was: the fence says when it is enough. */
static int is_last(const struct task *t, const struct claimd_context *job)
{
    if (strcmp(t->does, "snooze") == 0) {
        return job->fence % 2 == 0;
    }
    return strcmp(t->does, "done") == 0 || (t->until != 0 && job->attempt >= t->until);
}

/* The checkpoint that it was given, as a number; 0 = none. */
static int step_before(const struct claimd_context *job)
{
    json_t *from =
        job->checkpoint == NULL ? NULL : json_loadb(job->checkpoint, job->checkpoint_len, 0, NULL);
    int at = (int)json_integer_value(json_object_get(from, "at"));
    json_decref(from);
    return at;
}

static enum claimd_outcome handle(const struct claimd_context *job)
{
    struct task t = {.n = 0};
    char text[64];
    task_read(&t, job);
    (void)snprintf(text, sizeof text, "%d", step_before(job));
    if (note(&t, job, 's', text) != 0) {
        return claimd_retry(job, 0, "the ledger can't be written");
    }
    if (work(&t, job) != 0) {
        (void)note(&t, job, 'x', "cancel");
        return claimd_cancel(job, "as you like");
    }
    if (!is_last(&t, job)) {
        return fall(&t, job);
    }
    (void)snprintf(text, sizeof text, "{\"fence\": %" PRId64 "}", job->fence);
    (void)note(&t, job, 'd', "");
    return claimd_done(job, text);
}

/* `KIND("s_long")`: crashes may be as many as there are kills of runners; it tries again soon. */
#define KIND(kind_name)                                                                   \
    {                                                                                     \
        .name = (kind_name), .handle = handle, .max_attempts = MANY, .max_crashes = MANY, \
        .backoff = "exponential:100ms:2s~20%"                                             \
    }

#ifdef SOAK_RARE
CLAIMD_PLUGIN(.name = "soak_rare", .version = "1.0", .kinds = {KIND("s_rare")})
#else
CLAIMD_PLUGIN(.name = "soak", .version = "1.0",
              .kinds = {KIND("s_plain"),
                        KIND("s_flaky"),
                        KIND("s_long"),
                        KIND("s_gone"),
                        {.name = "s_once", .handle = handle, .at_most_once = 1}})
#endif
