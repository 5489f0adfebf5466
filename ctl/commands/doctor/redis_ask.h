/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks several Redis the same questions at once and waits for the answers, for at most 4 s. */
#ifndef CLAIMD_CTL_REDIS_ASK_H
#define CLAIMD_CTL_REDIS_ASK_H

#include "config/config.h"
#include "redis/redis.h"

struct redis_ask {
    const char (*nodes)[CONFIG_TEXT_MAX]; /* texts for redis_endpoint_parse() */
    size_t node_count;
    const struct config *config; /* redis.user, redis.password */
    const struct buf *questions; /* commands */
    size_t question_count;
    void (*on_reply)(void *ctx, size_t node, size_t index, const struct redis_value *v);
    void *ctx;
};

/* *ret_answered: how many nodes have answered everything. INVALID: the text of a node is not an
 * address, or a node refused a question, for example because of missing rights. UNAVAILABLE: none
 * answered. */
enum status redis_ask(const struct redis_ask *ask, size_t *ret_answered, struct err *err) MUST_USE;

#endif
