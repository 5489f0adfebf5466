/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/handshake.h"

#include "redis/info.h"

#include <stdio.h>

#define NOBODYS_ID "9223372036854775807"

static enum status add(struct handshake *h, struct buf *out, enum handshake_step step,
                       const char *const *words, size_t count, struct err *err)
{
    struct redis_arg args[8];
    for (size_t i = 0; i < count; i++) {
        args[i] = redis_word(words[i]);
    }
    h->steps[h->step_count++] = step;
    return redis_command(out, args, count, err);
}
#define ADD(h, out, err, step, ...)                             \
    add((h), (out), (step), (const char *const[]){__VA_ARGS__}, \
        ARRAY_COUNT(((const char *const[]){__VA_ARGS__})), (err))

static enum status add_auth(struct handshake *h, const struct redis_endpoint *e, struct buf *out,
                            struct err *err)
{
    if (e->user[0] != '\0') {
        return ADD(h, out, err, STEP_AUTH, "AUTH", e->user, e->password);
    }
    if (e->password[0] != '\0') {
        return ADD(h, out, err, STEP_AUTH, "AUTH", e->password);
    }
    return STATUS_OK;
}

static enum status add_select(struct handshake *h, int db, struct buf *out, struct err *err)
{
    char text[12];
    (void)snprintf(text, sizeof text, "%d", db);
    return db == 0 ? STATUS_OK : ADD(h, out, err, STEP_SELECT, "SELECT", text);
}

enum status handshake_start(struct handshake *h, const struct redis_options *options,
                            struct buf *out, struct err *err)
{
    *h = (struct handshake){0};
    enum status st = add_auth(h, &options->endpoint, out, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = add_select(h, options->endpoint.db, out, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ADD(h, out, err, STEP_INFO, "INFO", "server", "memory", "replication", "cluster");
    if (st != STATUS_OK) {
        return st;
    }
    st = ADD(h, out, err, STEP_CLIENT_ID, "CLIENT", "ID");
    if (st != STATUS_OK) {
        return st;
    }
    st = ADD(h, out, err, STEP_CLIENT_KILL, "CLIENT", "KILL", "ID", NOBODYS_ID);
    if (st != STATUS_OK) {
        return st;
    }
    st = ADD(h, out, err, STEP_COMMANDS, "COMMAND", "INFO", "DELIFEQ", "DELEX");
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < options->script_count; i++) {
        st = ADD(h, out, err, STEP_SCRIPT, "SCRIPT", "LOAD", options->scripts[i]->body);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static void refuse(struct handshake *h, const char *command, const struct redis_value *v)
{
    if (v->type == REDIS_ERROR) {
        err_set(&h->err, STATUS_UNAVAILABLE, 0, "%s refused: %s", command, v->text);
        h->is_config = redis_error_class(v) == REDIS_ERROR_CONFIG;
        if (h->is_config && h->steps[h->done - 1] == STEP_AUTH) {
            err_prefix(&h->err, "wrong user or password");
        }
    } else {
        err_set(&h->err, STATUS_UNAVAILABLE, 0, "%s: unexpected kind of reply", command);
        h->is_config = true;
    }
}

static void take_ok(struct handshake *h, const char *command, const struct redis_value *v)
{
    if (v->type != REDIS_STATUS) {
        refuse(h, command, v);
    }
}

static void take_info(struct handshake *h, const struct redis_value *v)
{
    if (v->type != REDIS_STRING) {
        refuse(h, "INFO", v);
    } else if (redis_info_parse(v->text, v->len, &h->info, &h->err) != STATUS_OK) {
        h->is_config = true;
    }
}

/* Takes the reply to COMMAND INFO: one entry per command, nil if it does not exist. */
static void take_commands(struct handshake *h, const struct redis_value *v)
{
    if (v->type == REDIS_ARRAY && v->len == 2) {
        h->info.has_delifeq = v->items[0]->type == REDIS_ARRAY;
        h->info.has_delex = v->items[1]->type == REDIS_ARRAY;
    }
}

/* True if the command is permitted. A command may exist without being permitted: an ACL written for
 * an older server has no rule for it. We may have no right to the key, but the server says so only
 * after it has permitted the command. */
static bool is_permitted(const struct redis_value *v)
{
    return v->type == REDIS_INTEGER ||
           (v->type == REDIS_ERROR && strncmp(v->text, "NOPERM", strlen("NOPERM")) == 0 &&
            strstr(v->text, " key") != NULL);
}

static void take_sha(struct handshake *h, const struct redis_value *v)
{
    if (v->type != REDIS_STRING || v->len != REDIS_SHA_LEN) {
        refuse(h, "SCRIPT LOAD", v);
        return;
    }
    memcpy(h->sha[h->sha_count++], v->text, REDIS_SHA_LEN + 1);
}

void handshake_reply(struct handshake *h, const struct redis_value *v)
{
    enum handshake_step step = h->steps[h->done++];
    if (h->err.status != STATUS_OK) {
        return; /* replies after a refused AUTH only repeat the error */
    }
    switch (step) {
    case STEP_AUTH:
        take_ok(h, "AUTH", v);
        break;
    case STEP_SELECT:
        take_ok(h, "SELECT", v);
        break;
    case STEP_INFO:
        take_info(h, v);
        break;
    case STEP_CLIENT_ID:
        h->info.client_id = v->type == REDIS_INTEGER ? v->integer : 0;
        break;
    case STEP_CLIENT_KILL:
        h->may_kill = v->type == REDIS_INTEGER;
        break;
    case STEP_COMMANDS:
        take_commands(h, v);
        break;
    case STEP_DELIFEQ:
        h->info.has_delifeq = is_permitted(v);
        break;
    case STEP_DELEX:
        h->info.has_delex = is_permitted(v);
        break;
    case STEP_SCRIPT:
        take_sha(h, v);
        break;
    }
}

bool handshake_is_over(const struct handshake *h)
{
    return h->done == h->step_count;
}

static enum status add_second(struct handshake *h, struct buf *out, struct err *err)
{
    if (h->info.has_delifeq) {
        enum status st = ADD(h, out, err, STEP_DELIFEQ, "DELIFEQ", "", "may we?");
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (h->info.has_delex) {
        return ADD(h, out, err, STEP_DELEX, "DELEX", "", "IFEQ", "may we?");
    }
    return STATUS_OK;
}

enum status handshake_go_on(struct handshake *h, struct buf *out, bool *ret_goes_on,
                            struct err *err)
{
    enum status st =
        h->is_second || h->err.status != STATUS_OK ? STATUS_OK : add_second(h, out, err);
    h->is_second = true;
    *ret_goes_on = !handshake_is_over(h);
    return st;
}
