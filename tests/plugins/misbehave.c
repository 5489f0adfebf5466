/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that do what handlers must not do, and some that tell the tests what was run. */
#include "claimd/plugin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAMES_FD 3
#define STEP_MS 10

static json_int_t number_arg(const struct claimd_context *job, const char *name)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    json_int_t value = json_integer_value(json_object_get(args, name));
    json_decref(args);
    return value;
}

static enum claimd_outcome crash_segv(const struct claimd_context *job)
{
    (void)job;
    (void)raise(SIGSEGV);
    return CLAIMD_DONE;
}

static enum claimd_outcome crash_abort(const struct claimd_context *job)
{
    (void)job;
    abort();
}

static enum claimd_outcome crash_exit0(const struct claimd_context *job)
{
    (void)job;
    exit(0);
}

static enum claimd_outcome spin(const struct claimd_context *job)
{
    (void)job;
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    volatile int forever = 1;
    while (forever) {
    }
    return CLAIMD_DONE;
}

/* {"end": 0…2}: crashes, loops for ever, or ends its process, with something said before. */
static enum claimd_outcome last_words(const struct claimd_context *job)
{
    claimd_log(job, "first words");
    for (int i = 0; i < 2000; i++) {
        claimd_log(job, "word %d", i);
    }
    claimd_log(job, "last words of attempt %d", (int)job->attempt);
    switch (number_arg(job, "end")) {
    case 0:
        return crash_segv(job);
    case 1:
        return spin(job);
    default:
        exit(7);
    }
}

static enum claimd_outcome garbage(const struct claimd_context *job)
{
    static const char junk[] = "this is no frame, and it is longer than any head of one";
    return write(FRAMES_FD, junk, sizeof junk) > 0 ? claimd_done(job, NULL) : CLAIMD_FAIL;
}

static enum claimd_outcome huge_result(const struct claimd_context *job)
{
    static char json[200000];
    json[0] = '"';
    for (size_t i = 1; i < sizeof json - 2; i++) {
        json[i] = 'x';
    }
    json[sizeof json - 2] = '"';
    return claimd_done(job, json);
}

/* Ignores the values that the calls return. */
static enum claimd_outcome heedless_result(const struct claimd_context *job)
{
    static char json[200000];
    memset(json, ' ', sizeof json);
    (void)job->host->set_result(job, "1", 1);
    (void)job->host->set_result(job, json, sizeof json);
    return CLAIMD_DONE;
}

static enum claimd_outcome bad_result_nul(const struct claimd_context *job)
{
    return claimd_done(job, "{\"text\": \"a\\u0000b\"}");
}

static enum claimd_outcome bad_result_surrogate(const struct claimd_context *job)
{
    return claimd_done(job, "{\"text\": \"\\ud800\"}");
}

static enum claimd_outcome bad_result_number(const struct claimd_context *job)
{
    return claimd_done(job, "{\"number\": 1e400000}");
}

static enum claimd_outcome bad_result_utf8(const struct claimd_context *job)
{
    return claimd_done(job, "{\"text\": \"half \xe2\x82\"}");
}

static enum claimd_outcome fail(const struct claimd_context *job)
{
    return claimd_fail(job, "told to fail, attempt %d", (int)job->attempt);
}

/* {"until": N, "ms": M}: attempts before the Nth fail, each with a retry after M ms. */
static enum claimd_outcome retry(const struct claimd_context *job)
{
    if (job->attempt < number_arg(job, "until")) {
        return claimd_retry(job, (long)number_arg(job, "ms"), "attempt %d is too early",
                            (int)job->attempt);
    }
    return claimd_done(job, NULL);
}

/* {"ms": N, "crash": bool}: of a kind that is started at most once. */
static enum claimd_outcome once(const struct claimd_context *job)
{
    json_int_t ms = number_arg(job, "ms");
    (void)poll(NULL, 0, (int)ms);
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    int crash = json_is_true(json_object_get(args, "crash"));
    json_decref(args);
    return crash ? crash_segv(job) : claimd_done(job, NULL);
}

static int note(const char *path, const struct claimd_context *job, const char *what)
{
    char line[128];
    int len = snprintf(line, sizeof line, "%" PRId64 " %" PRId64 " %" PRId32 " %ld %s\n", job->id,
                       job->fence, job->attempt, (long)getpid(), what);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int rc = fd >= 0 && write(fd, line, (size_t)len) == len ? 0 : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

/* Sleeps, but for a request to stop: in steps, since its signal may come before poll() does. */
static void rest(const struct claimd_context *job, int ms)
{
    for (int left = ms; left > 0 && !claimd_should_stop(job); left -= STEP_MS) {
        (void)poll(NULL, 0, left < STEP_MS ? left : STEP_MS);
    }
}

/* Its result is what it was given. */
static enum claimd_outcome echo(const struct claimd_context *job)
{
    return claimd_done(job, job->args);
}

/* {"path": file, "ms": N, "crash": bool}: the tests' own record of what ran when. */
static enum claimd_outcome ledger(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    const char *path = json_string_value(json_object_get(args, "path"));
    int ms = (int)json_integer_value(json_object_get(args, "ms"));
    enum claimd_outcome outcome = CLAIMD_DONE;
    if (path == NULL || note(path, job, "start") != 0) {
        outcome = claimd_fail(job, "args need a path that can be written");
    } else {
        rest(job, ms);
        if (json_is_true(json_object_get(args, "crash"))) {
            outcome = crash_segv(job);
        } else if (note(path, job, "end") != 0) {
            outcome = claimd_retry(job, -1, "write: errno %d", errno);
        }
    }
    json_decref(args);
    return outcome;
}

static enum claimd_outcome close_fds(const struct claimd_context *job)
{
    (void)close_range(0, 1000, 0);
    return claimd_done(job, NULL);
}

static enum claimd_outcome no_outcome(const struct claimd_context *job)
{
    (void)job;
    return (enum claimd_outcome)77;
}

static enum claimd_outcome chatter(const struct claimd_context *job)
{
    for (int i = 0; i < 5000; i++) {
        claimd_log(job, "line %d", i);
    }
    return claimd_retry(job, 1500, "%2000s", "long");
}

/* What is asked for by {"what": N} is left behind in the process. */
static void *linger(void *arg)
{
    (void)poll(NULL, 0, -1);
    return arg;
}

static int leave_behind(json_int_t what)
{
    pthread_t thread;
    switch (what) {
    case 0:
        return chdir("/tmp");
    case 1:
        (void)umask(0777);
        return 0;
    case 2:
        for (int i = 0; i < 100; i++) {
            (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
        return 0;
    case 3:
        return pthread_create(&thread, NULL, linger, NULL);
    case 4:
        return signal(SIGTERM, SIG_IGN) == SIG_ERR;
    case 5:
        return setenv("LEFT", "behind", 1);
    case 6:
        return (int)alarm(3600);
    default:
        return close(0);
    }
}

static enum claimd_outcome dirty(const struct claimd_context *job)
{
    return leave_behind(number_arg(job, "what")) == 0 ? claimd_done(job, NULL) : CLAIMD_FAIL;
}

/* Leaves a process in a session of its own whose parent has gone; its pid is the result. */
static enum claimd_outcome daemonize(const struct claimd_context *job)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return CLAIMD_FAIL;
    }
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            (void)poll(NULL, 0, 20000); /* long enough to be found, not to stay for ever */
            _exit(0);
        }
        _exit(write(ends[1], &grandchild, sizeof grandchild) == sizeof grandchild ? 0 : 1);
    }
    pid_t left = 0;
    ssize_t n = read(ends[0], &left, sizeof left);
    (void)close(ends[0]);
    (void)close(ends[1]);
    char json[32];
    (void)snprintf(json, sizeof json, "%d", (int)left);
    return n == sizeof left ? claimd_done(job, json) : CLAIMD_FAIL;
}

/* The process' pid and environment as the handler sees them, and what claimd said of the job. */
static enum claimd_outcome inspect(const struct claimd_context *job)
{
    const char *secret = getenv("CLAIMD_POSTGRES_PASSWORD");
    json_t *all =
        json_pack("{s:i, s:i, s:b, s:b, s:s, s:s, s:i, s:I}", "pid", (int)getpid(), "group",
                  (int)getpgrp(), "secret", secret != NULL, "path", getenv("PATH") != NULL, "key",
                  job->idempotency_key, "kind", job->kind, "attempt", (int)job->attempt,
                  "deadline_us", (json_int_t)job->deadline_us);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    enum claimd_outcome outcome = text != NULL ? claimd_done(job, text) : CLAIMD_FAIL;
    free(text);
    return outcome;
}

static int may_open(json_int_t pid, const char *file, int flags)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%lld/%s", (long long)pid, file);
    int fd = open(path, flags | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

/* {"pid": N}: may this process look into that one? 0 = into the worker. */
static enum claimd_outcome spy(const struct claimd_context *job)
{
    char json[128];
    json_int_t pid = number_arg(job, "pid");
    pid = pid == 0 ? getppid() : pid;
    (void)snprintf(json, sizeof json, "{\"uid\": %u, \"mem\": %d, \"environ\": %d}", getuid(),
                   may_open(pid, "mem", O_RDWR), may_open(pid, "environ", O_RDONLY));
    return claimd_done(job, json);
}

/* {"text": T}: is that anywhere in the environment that this process was started with? */
static enum claimd_outcome environment(const struct claimd_context *job)
{
    static char bytes[1 << 16];
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    const char *text = json_string_value(json_object_get(args, "text"));
    (void)prctl(PR_SET_DUMPABLE, 1); /* else its own /proc is root's */
    int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    int found = text != NULL && n > 0 && memmem(bytes, (size_t)n, text, strlen(text)) != NULL;
    int is_readable = text != NULL && n > 0;
    (void)close(fd);
    (void)prctl(PR_SET_DUMPABLE, 0);
    json_decref(args);
    return is_readable ? claimd_done(job, found ? "true" : "false") : CLAIMD_FAIL;
}

/* What each descriptor of this process stands for, as the kernel names it: one text. */
static enum claimd_outcome descriptors(const struct claimd_context *job)
{
    char json[8192] = "\"";
    size_t len = 1;
    DIR *all = opendir("/proc/self/fd");
    for (const struct dirent *e = NULL; all != NULL && (e = readdir(all)) != NULL;) {
        char target[256];
        ssize_t n = readlinkat(dirfd(all), e->d_name, target, sizeof target);
        if (n > 0 && len + (size_t)n + 3 < sizeof json) {
            len += (size_t)snprintf(json + len, sizeof json - len, "%.*s ", (int)n, target);
        }
    }
    (void)snprintf(json + len, sizeof json - len, "\"");
    return all != NULL && closedir(all) == 0 ? claimd_done(job, json) : CLAIMD_FAIL;
}

CLAIMD_PLUGIN(.name = "misbehave", .version = "1.0",
              .kinds = {{.name = "crash_segv", .handle = crash_segv, .max_crashes = 2},
                        {.name = "crash_abort", .handle = crash_abort, .max_crashes = 2},
                        {.name = "crash_exit0", .handle = crash_exit0, .max_crashes = 2},
                        {.name = "spin", .handle = spin, .timeout_ms = 1000},
                        {.name = "last_words", .handle = last_words, .timeout_ms = 1000},
                        {.name = "garbage", .handle = garbage, .max_crashes = 2},
                        {.name = "huge_result", .handle = huge_result},
                        {.name = "heedless_result", .handle = heedless_result},
                        {.name = "bad_result_nul", .handle = bad_result_nul},
                        {.name = "bad_result_surrogate", .handle = bad_result_surrogate},
                        {.name = "bad_result_number", .handle = bad_result_number},
                        {.name = "bad_result_utf8", .handle = bad_result_utf8},
                        {.name = "fail", .handle = fail},
                        {.name = "echo", .handle = echo},
                        {.name = "retry", .handle = retry},
                        {.name = "once", .handle = once, .at_most_once = 1},
                        {.name = "ledger", .handle = ledger},
                        {.name = "close_fds", .handle = close_fds},
                        {.name = "no_outcome", .handle = no_outcome},
                        {.name = "chatter", .handle = chatter},
                        {.name = "dirty", .handle = dirty},
                        {.name = "daemonize", .handle = daemonize},
                        {.name = "inspect", .handle = inspect},
                        {.name = "spy", .handle = spy},
                        {.name = "environment", .handle = environment},
                        {.name = "descriptors", .handle = descriptors}})
