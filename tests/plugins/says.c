/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that say what handlers may say besides done, retry and fail. */
#include "claimd/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
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

/* {"as": text}: waits for its cancel, and then says that; `deaf` waits for its end. */
static enum claimd_outcome wait_cancel(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    const char *as = json_string_value(json_object_get(args, "as"));
    enum claimd_outcome outcome = CLAIMD_DONE;
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

CLAIMD_PLUGIN(.name = "says", .version = "1.0",
              .kinds = {
                  {.name = "snooze", .handle = nap, .max_attempts = 2},
                  {.name = "snooze_once", .handle = nap, .max_attempts = 2, .at_most_once = 1},
                  {.name = "give_up", .handle = give_up},
                  {.name = "tired", .handle = tired, .backoff = "list:2h,3h"},
                  {.name = "wait_cancel", .handle = wait_cancel}})
