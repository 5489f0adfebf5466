/* SPDX-License-Identifier: Apache-2.0 */
#include "operator.h"

#include <check.h>
#include <stdio.h>

#define END_US (60 * US_PER_S)
#define ENV_MAX 10
#define WORDS_MAX 12

const char *const program_names[PROGRAMS] = {"claimd-worker", "claimd-scheduler", "claimctl"};

struct call {
    char program[OPERATOR_TEXT_SIZE];
    char config[OPERATOR_TEXT_SIZE];
    char words[OPERATOR_TEXT_SIZE];
    const char *argv[WORDS_MAX + 4];
    char variables[ENV_MAX][OPERATOR_TEXT_SIZE];
    const char *env[ENV_MAX + 1];
};

void operator_expand(const struct fleet *f, const char *text, char ret_text[OPERATOR_TEXT_SIZE])
{
    size_t at = 0;
    ret_text[0] = '\0';
    for (const char *p = text; *p != '\0'; p++) {
        int n = *p == '@' ? snprintf(ret_text + at, OPERATOR_TEXT_SIZE - at, "%s", f->dir)
                          : snprintf(ret_text + at, OPERATOR_TEXT_SIZE - at, "%c", *p);
        ck_assert(n > 0 && at + (size_t)n < OPERATOR_TEXT_SIZE);
        at += (size_t)n;
    }
}

void operator_write(const struct fleet *f, const char *name, const char *text, mode_t mode)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", f->dir, name);
    (void)unlink(path);
    FILE *file = fopen(path, "w");
    ck_assert_msg(file != NULL, "%s", path);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
}

/* Programs that are to find no PostgreSQL give up soon; other commands wait long enough even on a
 * busy machine. */
#define REFUSED "CLAIMD_POSTGRES_TIMEOUT_MS=800"
#define PATIENT "CLAIMD_POSTGRES_TIMEOUT_MS=30000"

/* Puts the variables of the case first, then those that every program needs: the first one of a
 * name wins. */
static void make_env(const struct fleet *f, const char *env, const char *timeout, struct call *call)
{
    static const char common[] = "CLAIMD_WORKER_STATE_DIR=@/state-operator\n"
                                 "CLAIMD_WORKER_HTTP_LISTEN=\n"
                                 "CLAIMD_SCHEDULER_HTTP_LISTEN=";
    const char *const lists[] = {env, timeout, common};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
        for (const char *at = lists[i]; *at != '\0'; at += *at == '\n' ? 1 : 0) {
            size_t len = strcspn(at, "\n");
            autofree char *one = strndup(at, len);
            ck_assert(one != NULL && n < ENV_MAX);
            operator_expand(f, one, call->variables[n]);
            call->env[n] = call->variables[n];
            n++;
            at += len;
        }
    }
    call->env[n] = NULL;
}

static void make_call(const struct fleet *f, enum program p, const char *config, const char *env,
                      const char *timeout, const char *words, struct call *call)
{
    size_t n = 3;
    char *rest = NULL;
    (void)snprintf(call->program, sizeof call->program, "%s/%s", getenv("CLAIMD_BIN_DIR"),
                   program_names[p]);
    (void)snprintf(call->config, sizeof call->config, "%s/%s", f->dir, config);
    (void)snprintf(call->words, sizeof call->words, "%s", words);
    call->argv[0] = call->program;
    call->argv[1] = "--config";
    call->argv[2] = call->config;
    for (char *word = strtok_r(call->words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        ck_assert_uint_lt(n, ARRAY_COUNT(call->argv) - 1);
        call->argv[n++] = word;
    }
    call->argv[n] = NULL;
    make_env(f, env, timeout, call);
}

static int run(const struct call *call, struct buf *out)
{
    struct err err = {0};
    int code = -1;
    ck_assert_msg(program_run(call->argv, call->env, END_US, out, &code, &err) == STATUS_OK,
                  "%s: %s", err.msg, out->len > 0 ? buf_at(out) : "");
    /* Adds a NUL even if it is empty. */
    ck_assert_int_eq(buf_append_text(out, "", &err), STATUS_OK);
    return code;
}

int operator_run(const struct fleet *f, enum program p, const char *config, const char *env,
                 struct buf *out)
{
    struct call call;
    make_call(f, p, config, env, REFUSED, p == CTL ? "stats" : "", &call);
    return run(&call, out);
}

int operator_ctl(const struct fleet *f, const char *config, const char *env, const char *words,
                 struct buf *out)
{
    struct call call;
    make_call(f, CTL, config, env, PATIENT, words, &call);
    return run(&call, out);
}

pid_t operator_start(const struct fleet *f, enum program p, const char *config, const char *env,
                     const char *log)
{
    struct call call;
    struct err err = {0};
    pid_t pid = 0;
    make_call(f, p, config, env, REFUSED, "", &call);
    ck_assert_msg(program_start(call.argv, call.env, log, &pid, &err) == STATUS_OK, "%s", err.msg);
    return pid;
}
