/* SPDX-License-Identifier: Apache-2.0
 *
 * The candidate of the conformance kit (cases.json) in C: what args.do names. */
#include <claimd/plugin.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void wait_a_little(void)
{
    (void)poll(NULL, 0, 10);
}

static enum claimd_outcome wait_for_stop(const struct claimd_context *job)
{
    (void)claimd_progress(job, 1, NULL);
    while (!claimd_should_stop(job)) {
        wait_a_little();
    }
    return claimd_retry(job, 0, "told to stop");
}

static _Noreturn void ignore_stop(const struct claimd_context *job)
{
    (void)claimd_progress(job, 1, NULL);
    for (;;) {
        wait_a_little();
    }
}

static enum claimd_outcome checkpoint(const struct claimd_context *job)
{
    if (job->checkpoint != NULL) {
        return claimd_done(job, job->checkpoint);
    }
    (void)claimd_checkpoint(job, "{\"at\": 3}");
    return claimd_retry(job, 0, "once more");
}

static enum claimd_outcome too_long(const struct claimd_context *job)
{
    size_t len = 70000;
    char *json = malloc(len + 1);
    memset(json, 'x', len);
    json[0] = json[len - 1] = '"';
    json[len] = '\0';
    enum claimd_outcome outcome = claimd_done(job, json);
    free(json);
    return outcome;
}

static enum claimd_outcome act(const struct claimd_context *job, const char *what)
{
    if (strcmp(what, "log") == 0) {
        claimd_log(job, "first \xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80");
        claimd_log(job, "second");
    } else if (strcmp(what, "progress") == 0) {
        (void)claimd_progress(job, 40, "half");
    } else if (strcmp(what, "retry") == 0) {
        return claimd_retry(job, 30000, "the printer \"jams\"");
    } else if (strcmp(what, "backoff") == 0) {
        return claimd_retry(job, -1, "as usual");
    } else if (strcmp(what, "snooze") == 0) {
        return claimd_snooze(job, 60000, "not packed");
    } else if (strcmp(what, "fail") == 0) {
        return claimd_fail(job, "bad order");
    } else if (strcmp(what, "cancel") == 0) {
        return claimd_cancel(job, "void");
    } else if (strcmp(what, "nothing") == 0) {
        return claimd_done(job, NULL);
    } else if (strcmp(what, "echo") == 0) {
        return claimd_done(job, job->args);
    } else if (strcmp(what, "checkpoint") == 0) {
        return checkpoint(job);
    } else if (strcmp(what, "too_long") == 0) {
        return too_long(job);
    } else if (strcmp(what, "print") == 0) {
        (void)printf("printed\n");
        (void)fflush(stdout);
    } else if (strcmp(what, "crash") == 0) {
        (void)raise(SIGKILL);
    } else if (strcmp(what, "stop") == 0) {
        return wait_for_stop(job);
    } else if (strcmp(what, "ignore") == 0) {
        ignore_stop(job);
    }
    return claimd_done(job, "{\"ok\": true}");
}

/* "do" is the first member of args, as the cases are written. */
static enum claimd_outcome conform(const struct claimd_context *job)
{
    char what[32] = "";
    const char *at = strstr(job->args, "\"do\":");
    if (at == NULL || sscanf(at, "\"do\": \"%31[a-z_]", what) != 1) {
        return claimd_fail(job, "args need a do");
    }
    return act(job, what);
}

CLAIMD_PLUGIN(.name = "conform", .version = "1", .kinds = {{.name = "conform", .handle = conform}})
