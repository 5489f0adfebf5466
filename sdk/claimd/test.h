/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of a handler without servers. claimd-handler-test, which is installed beside
 * claimd-worker, runs a job in a real runner: crashes, kills and limits are as in a worker, and a
 * crash ends only that attempt, not the test. Works with any test library; with libcheck:
 *
 *     START_TEST(counts)
 *     {
 *         struct claimd_test_job job = {.kind = "count", .args = "{\"count\": 3}"};
 *         struct claimd_test_run run = claimd_test("plugins/count.so", &job);
 *         ck_assert_str_eq(run.outcome, "done");
 *         ck_assert_str_eq(run.result, "{\"counted\": 3}");
 *         claimd_test_free(&run);
 *     }
 *     END_TEST
 *
 * Needs POSIX.1-2008, nothing to link. */
#ifndef CLAIMD_TEST_H
#define CLAIMD_TEST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CLAIMD_HANDLER_TEST
#define CLAIMD_HANDLER_TEST "claimd-handler-test" /* found by PATH */
#endif

#define CLAIMD_TEST_NONE 127 /* exit code of a child that could not execute it */

/* Members that are 0 or NULL get the values of a new job. Strings that are not JSON are quoted but
 * not escaped. */
struct claimd_test_job {
    const char *kind;
    const char *args;       /* JSON; NULL = {} */
    const char *checkpoint; /* JSON: saved by an earlier attempt */
    const char *queue;
    const char *tags;     /* JSON */
    const char *metadata; /* JSON */
    int attempt;          /* 0 = the first */
    int max_attempts;
    int crashes;
    long timeout_ms;    /* 0 = a minute */
    const char *stop;   /* reason to stop it: "timeout", "cancel", "shutdown" or "lease" */
    long stop_after_ms; /* after its start; 0 = at its first progress */
    long grace_ms;      /* from the stop to the kill; 0 = 2 s */
};

/* The outcome of the attempt. Absent texts are "". Texts are valid until claimd_test_free(). */
struct claimd_test_run {
    /* "done", "retry", "fail", "snooze" or "cancel": returned by the handler; "crashed"; "killed":
     * it did not stop in time; "not_started"; "not_run": the file was refused or
     * claimd-handler-test can't be run, and `error` or the program's message on stderr says why. */
    const char *outcome;
    const char *result;     /* JSON, as the handler wrote it */
    const char *error;      /* with "retry", "fail", "snooze", "cancel", "crashed" */
    const char *log;        /* the end of its log */
    const char *checkpoint; /* JSON: saved for the next attempt */
    const char *text;       /* of its last progress */
    int progress;           /* −1 = none */
    long delay_ms;          /* before a retry or after a snooze; −1 = its kind's backoff */
    char *bytes;            /* memory of the texts */
};

static inline void claimd_test_free(struct claimd_test_run *run)
{
    free(run->bytes);
    run->bytes = NULL;
}

static inline size_t claimd_test_put(char *to, size_t size, size_t at, const char *name,
                                     const char *value, const char *quote)
{
    if (value == NULL) {
        return at;
    }
    int len = snprintf(to == NULL ? NULL : to + at, to == NULL ? 0 : size - at, "%s\"%s\": %s%s%s",
                       at == 1 ? "" : ", ", name, quote, value, quote);
    return at + (len > 0 ? (size_t)len : 0);
}

static inline size_t claimd_test_put_number(char *to, size_t size, size_t at, const char *name,
                                            long value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%ld", value);
    return claimd_test_put(to, size, at, name, value == 0 ? NULL : text, "");
}

/* Writes the job as JSON. Returns the length; with `to` NULL it does nothing else. */
static inline size_t claimd_test_write_job(char *to, size_t size, const struct claimd_test_job *job)
{
    size_t at = 1;
    at = claimd_test_put(to, size, at, "kind", job->kind, "\"");
    at = claimd_test_put(to, size, at, "args", job->args, "");
    at = claimd_test_put(to, size, at, "checkpoint", job->checkpoint, "");
    at = claimd_test_put(to, size, at, "queue", job->queue, "\"");
    at = claimd_test_put(to, size, at, "tags", job->tags, "");
    at = claimd_test_put(to, size, at, "metadata", job->metadata, "");
    at = claimd_test_put(to, size, at, "stop", job->stop, "\"");
    at = claimd_test_put_number(to, size, at, "attempt", job->attempt);
    at = claimd_test_put_number(to, size, at, "max_attempts", job->max_attempts);
    at = claimd_test_put_number(to, size, at, "crashes", job->crashes);
    at = claimd_test_put_number(to, size, at, "timeout_ms", job->timeout_ms);
    at = claimd_test_put_number(to, size, at, "stop_after_ms", job->stop_after_ms);
    at = claimd_test_put_number(to, size, at, "grace_ms", job->grace_ms);
    if (to != NULL) {
        to[0] = '{';
        (void)snprintf(to + at, size - at, "}");
    }
    return at + 1;
}

/* Reads to the end of `fd` and appends two NULs. NULL: out of memory. */
static inline char *claimd_test_read(int fd)
{
    size_t len = 0;
    size_t size = 4096;
    char *bytes = (char *)malloc(size);
    ssize_t n = 0;
    while (bytes != NULL && (n = read(fd, bytes + len, size - len - 2)) != 0) {
        if (n < 0 && errno != EINTR) {
            break;
        }
        len += n > 0 ? (size_t)n : 0;
        if (size - len < 4096) {
            char *more = (char *)realloc(bytes, 2 * size);
            size = more == NULL ? size : 2 * size;
            if (more == NULL) {
                break;
            }
            bytes = more;
        }
    }
    if (bytes != NULL) {
        memset(bytes + len, 0, 2);
    }
    return bytes;
}

/* Runs claimd-handler-test and returns what it prints; NULL: it was not started. *ret is its wait
 * status. */
static inline char *claimd_test_ask(const char *file, const char *job, int *ret)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return NULL;
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execlp(CLAIMD_HANDLER_TEST, CLAIMD_HANDLER_TEST, file, "--fields", "--job", job,
                     (char *)NULL);
        _exit(CLAIMD_TEST_NONE);
    }
    (void)close(ends[1]);
    char *bytes = pid < 0 ? NULL : claimd_test_read(ends[0]);
    (void)close(ends[0]);
    while (pid > 0 && waitpid(pid, ret, 0) < 0 && errno == EINTR) {
    }
    return bytes;
}

static inline void claimd_test_take(struct claimd_test_run *run, const char *field)
{
    static const char *const names[] = {
        "outcome=", "result=", "error=", "log=", "checkpoint=", "text=", NULL};
    const char **const texts[] = {&run->outcome,    &run->result, &run->error, &run->log,
                                  &run->checkpoint, &run->text,   NULL};
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strncmp(field, names[i], strlen(names[i])) == 0) {
            *texts[i] = field + strlen(names[i]);
        }
    }
    if (strncmp(field, "progress=", 9) == 0) {
        run->progress = (int)strtol(field + 9, NULL, 10);
    }
    if (strncmp(field, "delay_ms=", 9) == 0) {
        run->delay_ms = strtol(field + 9, NULL, 10);
    }
}

/* Runs one attempt of a job on `file`, a plugin or a handler file. Blocks until it has ended. */
static inline struct claimd_test_run claimd_test(const char *file,
                                                 const struct claimd_test_job *job)
{
    struct claimd_test_run run = {"not_run", "", "", "", "", "", -1, -1, NULL};
    size_t size = claimd_test_write_job(NULL, 0, job) + 1;
    char *text = (char *)malloc(size);
    int status = 0;
    if (text != NULL) {
        (void)claimd_test_write_job(text, size, job);
        run.bytes = claimd_test_ask(file, text, &status);
    }
    free(text);
    if (run.bytes == NULL) {
        run.error = CLAIMD_HANDLER_TEST " can't be started";
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == CLAIMD_TEST_NONE) {
        run.error = "there is no " CLAIMD_HANDLER_TEST;
    } else if (status != 0) {
        run.error = CLAIMD_HANDLER_TEST " failed, and says why on stderr";
    } else {
        for (const char *at = run.bytes; *at != '\0'; at += strlen(at) + 1) {
            claimd_test_take(&run, at);
        }
    }
    return run;
}

#ifdef __cplusplus
}
#endif

#endif
