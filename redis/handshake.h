/* SPDX-License-Identifier: Apache-2.0
 *
 * The first commands on every connection, in one round: AUTH, SELECT, INFO, other useful questions,
 * SCRIPT LOAD. On new servers, a second round asks whether we may use their new commands. Builds
 * the commands and checks the replies; pure. */
#ifndef CLAIMD_REDIS_HANDSHAKE_H
#define CLAIMD_REDIS_HANDSHAKE_H

#include "redis/redis.h"

#define REDIS_SCRIPTS_MAX 16
#define REDIS_SHA_LEN 40

enum handshake_step {
    STEP_AUTH,
    STEP_SELECT,
    STEP_INFO,
    STEP_CLIENT_ID,
    STEP_CLIENT_KILL,
    STEP_COMMANDS,
    STEP_DELIFEQ, /* this and the next only if the command exists */
    STEP_DELEX,
    STEP_SCRIPT,
};
#define HANDSHAKE_STEPS_MAX (STEP_SCRIPT + REDIS_SCRIPTS_MAX)

struct handshake {
    struct redis_server_info info;
    char sha[REDIS_SCRIPTS_MAX][REDIS_SHA_LEN + 1]; /* as the server computed them */
    size_t sha_count;
    enum handshake_step steps[HANDSHAKE_STEPS_MAX]; /* in the order of their replies */
    size_t step_count;
    size_t done;
    bool is_second; /* in the second round */
    bool may_kill;  /* CLIENT KILL exists and is permitted */
    struct err err; /* the first error */
    bool is_config; /* the configuration must be fixed: retrying soon does not help */
};

/* Zeroes *h and appends the commands. NOMEM. */
enum status handshake_start(struct handshake *h, const struct redis_options *options,
                            struct buf *out, struct err *err) MUST_USE;

/* Takes a reply; call it once per reply, in order. */
void handshake_reply(struct handshake *h, const struct redis_value *v);
/* True if all replies have arrived. Then h->err says whether the handshake failed; if not, there
 * may be a second round. */
bool handshake_is_over(const struct handshake *h);
/* Appends the second round, if there is one. NOMEM. */
enum status handshake_go_on(struct handshake *h, struct buf *out, bool *ret_goes_on,
                            struct err *err) MUST_USE;

#endif
