/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that print, as programs do that never heard of claimd_log(). */
#include "claimd/plugin.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int child_prints(void)
{
    static const char text[] = "Traceback of a child\n";
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(write(STDERR_FILENO, text, sizeof text - 1) > 0 ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* {"text": T, "end": "done", "fail", "abort" or "exit"}: prints T to both descriptors, a child of
 * it once more. */
static enum claimd_outcome prints(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    const char *text = json_string_value(json_object_get(args, "text"));
    const char *end = json_string_value(json_object_get(args, "end"));
    (void)fprintf(stderr, "%s to stderr\n", text);
    (void)printf("%s to stdout, without an end of the line", text);
    enum claimd_outcome outcome = CLAIMD_DONE;
    if (end[0] == 'a') {
        (void)fprintf(stderr, "%s failed an assertion", text);
        abort();
    } else if (end[0] == 'e') {
        exit(3);
    } else if (end[0] == 'f') {
        outcome = claimd_fail(job, "told to fail, after %d", child_prints());
    }
    json_decref(args);
    return outcome;
}

/* {"lines": N} */
static enum claimd_outcome prints_much(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    json_int_t lines = json_integer_value(json_object_get(args, "lines"));
    json_decref(args);
    for (json_int_t i = 1; i <= lines; i++) {
        (void)fprintf(stderr, "line %d of many that a handler prints\n", (int)i);
    }
    return claimd_fail(job, "printed");
}

CLAIMD_PLUGIN(.name = "prints", .version = "1.0",
              .kinds = {{.name = "prints", .handle = prints, .max_crashes = 1},
                        {.name = "prints_much", .handle = prints_much}})
