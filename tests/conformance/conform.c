/* SPDX-License-Identifier: Apache-2.0
 *
 * The candidate of the conformance kit as a plugin: it takes the steps of args.do, which
 * docs/guide/other-languages.md describes. */
#include <claimd/plugin.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OUTCOME_NONE 0 /* the next step is taken */

static void wait_a_little(void)
{
    (void)poll(NULL, 0, 10);
}

/* Replaces each "\0ooo" by its octet, in place. Returns the length. */
static size_t octets(char *text)
{
    size_t len = 0;
    for (const char *at = text; *at != '\0'; len++) {
        char digits[4] = "";
        if (at[0] == '\\' && at[1] == '0' && strlen(at) >= 5) {
            memcpy(digits, at + 2, 3);
            text[len] = (char)strtol(digits, NULL, 8);
            at += 5;
        } else {
            text[len] = *at++;
        }
    }
    text[len] = '\0';
    return len;
}

/* Cuts off the first word of *text and returns it. */
static char *take_word(char **text)
{
    char *word = *text;
    char *space = strchr(word, ' ');
    *text = space == NULL ? word + strlen(word) : space + 1;
    if (space != NULL) {
        *space = '\0';
    }
    return word;
}

static void leave(const char *seconds)
{
    if (fork() == 0) {
        (void)setsid();
        (void)execl("/bin/sleep", "sleep", seconds, (char *)NULL);
        _exit(127);
    }
}

static int signal_named(const char *name)
{
    int number = 1;
    while (number < 32 && strcmp(sigabbrev_np(number), name) != 0) {
        number++;
    }
    return number;
}

/* ---- steps that end the job ---- */

static enum claimd_outcome done_about(const struct claimd_context *job)
{
    char json[512];
    (void)snprintf(json, sizeof json,
                   "{\"job\": %lld, \"key\": \"%s\", \"kind\": \"%s\", \"queue\": \"%s\", "
                   "\"attempt\": %d, \"max_attempts\": %d, \"crashes\": %d}",
                   (long long)job->id, job->idempotency_key, job->kind, job->queue,
                   (int)job->attempt, (int)job->max_attempts, (int)job->crashes);
    return claimd_done(job, json);
}

static enum claimd_outcome done_tags(const struct claimd_context *job)
{
    char json[4096];
    (void)snprintf(json, sizeof json, "[%s, %s]", job->tags == NULL ? "[]" : job->tags,
                   job->metadata == NULL ? "{}" : job->metadata);
    return claimd_done(job, json);
}

static enum claimd_outcome delayed(const struct claimd_context *job, const char *verb, char *rest)
{
    const char *delay = take_word(&rest);
    long ms = strcmp(delay, "-") == 0 ? -1 : 1000 * strtol(delay, NULL, 10);
    return strcmp(verb, "retry") == 0 ? claimd_retry(job, ms, "%s", rest)
                                      : claimd_snooze(job, ms, "%s", rest);
}

static enum claimd_outcome end(const struct claimd_context *job, const char *verb, char *rest)
{
    if (strcmp(verb, "done") == 0) {
        return claimd_done(job, rest[0] == '\0' ? NULL : rest);
    }
    if (strcmp(verb, "done_args") == 0) {
        return claimd_done(job, job->args);
    }
    if (strcmp(verb, "done_checkpoint") == 0) {
        return claimd_done(job, job->checkpoint);
    }
    if (strcmp(verb, "done_about") == 0) {
        return done_about(job);
    }
    if (strcmp(verb, "done_tags") == 0) {
        return done_tags(job);
    }
    if (strcmp(verb, "retry") == 0 || strcmp(verb, "snooze") == 0) {
        return delayed(job, verb, rest);
    }
    if (strcmp(verb, "cancel") == 0) {
        return claimd_cancel(job, "%s", rest);
    }
    return claimd_fail(job, "%s%s", strcmp(verb, "fail") == 0 ? "" : "no such step: ", rest);
}

/* ---- other steps ---- */

static void refused_if(const struct claimd_context *job, int refused, const char *what)
{
    if (refused != 0) {
        claimd_log(job, "the %s was refused", what);
    }
}

static void progress(const struct claimd_context *job, const char *rest)
{
    char *text = NULL;
    int percent = (int)strtol(rest, &text, 10);
    refused_if(job, claimd_progress(job, percent, text[0] == ' ' ? text + 1 : NULL), "progress");
}

static void print(char *text)
{
    size_t len = octets(text);
    text[len] = '\n';
    (void)fwrite(text, 1, len + 1, stdout);
    (void)fflush(stdout);
    text[len] = '\0';
}

static void await_stop(const struct claimd_context *job, int heeds)
{
    while (!heeds || !claimd_should_stop(job)) {
        wait_a_little();
    }
}

static enum claimd_outcome step(const struct claimd_context *job, char *verb, char *rest)
{
    if (strcmp(verb, "log") == 0) {
        (void)octets(rest);
        claimd_log(job, "%s", rest);
    } else if (strcmp(verb, "print") == 0) {
        print(rest);
    } else if (strcmp(verb, "progress") == 0) {
        progress(job, rest);
    } else if (strcmp(verb, "checkpoint") == 0) {
        refused_if(job, claimd_checkpoint(job, rest), "checkpoint");
    } else if (strcmp(verb, "kill") == 0) {
        (void)kill(getpid(), signal_named(rest));
    } else if (strcmp(verb, "exit") == 0) {
        exit((int)strtol(rest, NULL, 10)); /* NOLINT(concurrency-mt-unsafe): a library may do so */
    } else if (strcmp(verb, "leave") == 0) {
        leave(rest);
    } else if (strcmp(verb, "wait") == 0) {
        (void)poll(NULL, 0, (int)(1000 * strtod(rest, NULL)));
    } else if (strcmp(verb, "await_stop") == 0 || strcmp(verb, "ignore_stop") == 0) {
        await_stop(job, verb[0] == 'a');
    } else {
        return end(job, verb, rest);
    }
    return OUTCOME_NONE;
}

/* Takes one step. "2: log x" is for the second attempt only, "50* log x" is repeated 50 times. */
static enum claimd_outcome take_step(const struct claimd_context *job, char *line)
{
    char *rest = line;
    char *verb = take_word(&rest);
    char mark = '\0';
    long number = 1;
    if (sscanf(verb, "%ld%c", &number, &mark) == 2) {
        verb = take_word(&rest);
    }
    if (mark == ':' && number != job->attempt) {
        return OUTCOME_NONE;
    }
    enum claimd_outcome outcome = OUTCOME_NONE;
    for (long i = mark == '*' ? number : 1; i > 0 && outcome == OUTCOME_NONE; i--) {
        outcome = step(job, verb, rest);
    }
    return outcome;
}

static enum claimd_outcome conform(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, JSON_DECODE_ANY, NULL);
    const char *steps = json_string_value(json_object_get(args, "do"));
    char *all = strdup(steps == NULL ? "done_args" : steps);
    enum claimd_outcome outcome = OUTCOME_NONE;
    for (char *line = all, *next = NULL; line != NULL && outcome == OUTCOME_NONE; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        outcome = line[0] == '\0' ? OUTCOME_NONE : take_step(job, line);
    }
    free(all);
    json_decref(args);
    return outcome == OUTCOME_NONE ? claimd_done(job, NULL) : outcome;
}

/* The second kind is for test_programs_mixed: its jobs are killed often, and run again at once. */
CLAIMD_PLUGIN(.name = "conform", .version = "2",
              .kinds = {{.name = "conform", .handle = conform},
                        {.name = "mixed_plugin",
                         .handle = conform,
                         .max_attempts = 1000,
                         .max_crashes = 1000,
                         .backoff = "fixed:0s"}})
