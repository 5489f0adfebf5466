/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that say what handlers may say besides done, retry and fail. */
#include "claimd/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Appends a byte to a file and returns how many it has now; −1: it can't. */
static off_t count_at(const char *path)
{
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        return -1;
    }
    off_t count = write(fd, ".", 1) == 1 ? lseek(fd, 0, SEEK_END) : -1;
    (void)close(fd);
    return count;
}

/* {"path": file, "times": N, "ms": M}: snoozes N times, for M ms, then is done. */
static enum claimd_outcome nap(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    off_t count = count_at(json_string_value(json_object_get(args, "path")));
    json_int_t times = json_integer_value(json_object_get(args, "times"));
    long ms = (long)json_integer_value(json_object_get(args, "ms"));
    json_decref(args);
    if (count < 0) {
        return claimd_fail(job, "args need a path that can be written: errno %d", errno);
    }
    if (count <= times) {
        return claimd_snooze(job, ms, "nap %d", (int)count);
    }
    return claimd_done(job, NULL);
}

static int number_of(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    int ms = (int)json_integer_value(json_object_get(args, "ms"));
    json_decref(args);
    return ms;
}

static enum claimd_outcome give_up(const struct claimd_context *job)
{
    claimd_log(job, "nobody waits for it");
    return claimd_cancel(job, "order %d is void", 7);
}

static enum claimd_outcome tired(const struct claimd_context *job)
{
    return claimd_retry(job, -1, "tired");
}

static void until_cancelled(const struct claimd_context *job)
{
    for (int ms = 0; ms < 60000 && !claimd_is_cancelled(job); ms += 5) {
        (void)poll(NULL, 0, 5);
    }
}

/* {"as": text}: says that it waits for its cancel, and then that; `deaf` waits for its end. */
static enum claimd_outcome wait_cancel(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    const char *as = json_string_value(json_object_get(args, "as"));
    enum claimd_outcome outcome = CLAIMD_DONE;
    claimd_progress(job, 0, "waiting");
    until_cancelled(job);
    if (as == NULL || strcmp(as, "cancel") == 0) {
        outcome = claimd_cancel(job, "as you like");
    } else if (strcmp(as, "retry") == 0) {
        outcome = claimd_retry(job, 0, "told to stop %d", claimd_should_stop(job));
    } else if (strcmp(as, "fail") == 0) {
        outcome = claimd_fail(job, "never mind");
    } else if (strcmp(as, "deaf") == 0) {
        for (;;) {
            (void)poll(NULL, 0, -1);
        }
    }
    json_decref(args);
    return outcome;
}

/* {"end": "retry" or "crash" or "wait"}: five steps; in its first attempt it comes to the third,
 * and ends so. The result says what the second one was given. */
static enum claimd_outcome steps(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    const char *end = json_string_value(json_object_get(args, "end"));
    char json[512];
    if (job->attempt > 1) {
        (void)snprintf(json, sizeof json,
                       "{\"from\": %s, \"queue\": \"%s\", \"tags\": %s, \"metadata\": %s, "
                       "\"crashes\": %d, \"generation\": %d, \"is_old\": %d}",
                       job->checkpoint == NULL ? "null" : job->checkpoint, job->queue,
                       job->tags == NULL ? "null" : job->tags,
                       job->metadata == NULL ? "null" : job->metadata, (int)job->crashes,
                       (int)job->generation, job->created_at_us > 0);
        json_decref(args);
        return claimd_done(job, json);
    }
    for (int i = 1; i <= 3; i++) {
        (void)snprintf(json, sizeof json, "{\"at\": %d}", i);
        if (claimd_progress(job, i * 20, "step \xe2\x82\xac") != 0 ||
            claimd_checkpoint(job, json) != 0) {
            return claimd_fail(job, "refused");
        }
    }
    if (strcmp(end, "crash") == 0) {
        (void)raise(SIGKILL);
    } else if (strcmp(end, "wait") == 0) {
        until_cancelled(job);
    }
    json_decref(args);
    return claimd_retry(job, -1, "once more");
}

/* What is refused, and what is not: the codes. */
static enum claimd_outcome refusals(const struct claimd_context *job)
{
    static char long_text[1000];
    static char long_json[70000];
    static char compact[50002];  /* 75,000 bytes as PostgreSQL writes it */
    static char exponents[2402]; /* 124,400 bytes */
    char json[256] = "[";
    memset(long_text, 'x', 201);
    memset(long_json, '1', sizeof long_json - 1);
    compact[0] = '[';
    for (size_t i = 1; i + 1 < sizeof compact; i++) {
        compact[i] = i % 2 == 1 ? '1' : i + 2 < sizeof compact ? ',' : ']';
    }
    for (size_t i = 0; i < 400; i++) {
        (void)snprintf(exponents + 6 * i, 7, "%c1e308", i == 0 ? '[' : ',');
    }
    exponents[2400] = ']';
    const int codes[] = {
        claimd_progress(job, -1, "a"),      claimd_progress(job, 101, "a"),
        claimd_progress(job, 5, long_text), claimd_progress(job, 5, "half \xe2\x82"),
        claimd_checkpoint(job, ""),         claimd_checkpoint(job, "{"),
        claimd_checkpoint(job, "{} {}"),    claimd_checkpoint(job, "\"a\\u0000b\""),
        claimd_checkpoint(job, "1e400000"), claimd_checkpoint(job, long_json),
        claimd_checkpoint(job, compact),    claimd_checkpoint(job, exponents)};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "%d,", codes[i]);
    }
    long_text[200] = '\0';
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "%d,%d]",
                   claimd_progress(job, 100, number_of(job) > 0 ? long_text : NULL),
                   claimd_checkpoint(job, "[1, \"two\"]"));
    return claimd_done(job, json);
}

/* Completes once it is asked to stop. */
static enum claimd_outcome late(const struct claimd_context *job)
{
    claimd_log(job, "late");
    while (!claimd_should_stop(job)) {
        (void)poll(NULL, 0, 5);
    }
    return claimd_done(job, NULL);
}

/* Takes 3 s to clean up when it is asked to stop, which is more than lock.guard_ms. */
static enum claimd_outcome clean_up(const struct claimd_context *job)
{
    while (!claimd_should_stop(job)) {
        (void)poll(NULL, 0, 5);
    }
    for (int ms = 0; ms < 3000; ms += 5) {
        (void)poll(NULL, 0, 5);
    }
    return claimd_done(job, "\"cleaned up\"");
}

static enum claimd_outcome tell(const struct claimd_context *job)
{
    claimd_log(job, "all is well");
    return claimd_done(job, NULL);
}

/* Logs more than is shown while it runs, and waits for its cancel. */
static enum claimd_outcome talk_on(const struct claimd_context *job)
{
    for (int i = 0; i < 300; i++) {
        claimd_log(job, "line %d \xe2\x82\xac \xff <script>", i);
    }
    until_cancelled(job);
    return claimd_cancel(job, "as you like");
}

/* Returns the predecessors and the metadata that it was given. */
static enum claimd_outcome pass(const struct claimd_context *job)
{
    char json[4096];
    (void)snprintf(json, sizeof json, "{\"predecessors\": %s, \"metadata\": %s}",
                   job->predecessors == NULL ? "null" : job->predecessors,
                   job->metadata == NULL ? "null" : job->metadata);
    return claimd_done(job, json);
}

/* {"ms": N}: says something new all the time. */
static enum claimd_outcome busy(const struct claimd_context *job)
{
    char text[32];
    for (int i = 0; i < number_of(job); i++) {
        (void)snprintf(text, sizeof text, "turn %d", i);
        (void)claimd_progress(job, i % 100, text);
        (void)poll(NULL, 0, 1);
    }
    return claimd_done(job, NULL);
}

CLAIMD_PLUGIN(.name = "says", .version = "1.0",
              .kinds = {
                  {.name = "snooze", .handle = nap, .max_attempts = 2},
                  {.name = "snooze_once", .handle = nap, .max_attempts = 2, .at_most_once = 1},
                  {.name = "give_up", .handle = give_up},
                  {.name = "tired", .handle = tired, .backoff = "list:2h,3h"},
                  {.name = "steps", .handle = steps, .backoff = "fixed:100ms"},
                  {.name = "refusals", .handle = refusals},
                  {.name = "busy", .handle = busy},
                  {.name = "tell", .handle = tell},
                  {.name = "talk_on", .handle = talk_on},
                  {.name = "pass", .handle = pass},
                  {.name = "tell_all", .handle = tell, .keep_log = 1},
                  {.name = "late", .handle = late, .timeout_ms = 500},
                  {.name = "clean_up", .handle = clean_up, .timeout_ms = 500, .grace_ms = 60000},
                  {.name = "clean_fast", .handle = clean_up, .timeout_ms = 500},
                  {.name = "wait_cancel", .handle = wait_cancel}})
