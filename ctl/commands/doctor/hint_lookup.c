/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/doctor/hint_lookup.h"

#include "ctl/commands/doctor/redis_ask.h"
#include "model/hint.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define REQUEST_BYTES_MAX ((size_t)1 << 20)
/* Per job: ZSCORE and ZCOUNT in the queue's own set, then in the set of its kind. */
#define QUESTIONS 4

struct lookup {
    const struct config *config;
    struct hint_lookup *list;
    int64_t counts[CONFIG_NODES_MAX]; /* of the job whose replies are arriving */
};

static enum status put_questions(const struct lookup *lookup, const struct hint_lookup *job,
                                 const char *kind, struct buf *out, struct err *err)
{
    char key[HINT_KEY_MAX];
    char id[24];
    char low[32];
    char high[32];
    size_t len = hint_key(key, lookup->config->redis.prefix, job->queue, kind);
    (void)snprintf(id, sizeof id, "%" PRId64, job->id);
    (void)snprintf(low, sizeof low, "%" PRId64, job->priority * HINT_PRIORITY_STEP);
    (void)snprintf(high, sizeof high, "(%" PRId64, (job->priority + 1) * HINT_PRIORITY_STEP);
    const struct redis_arg score[] = {redis_word("ZSCORE"), redis_bytes(key, len), redis_word(id)};
    const struct redis_arg count[] = {redis_word("ZCOUNT"), redis_bytes(key, len), redis_word(low),
                                      redis_word(high)};
    enum status st = redis_command(out, score, ARRAY_COUNT(score), err);
    if (st != STATUS_OK) {
        return st;
    }
    return redis_command(out, count, ARRAY_COUNT(count), err);
}

static void on_reply(void *ctx, size_t node, size_t index, const struct redis_value *v)
{
    struct lookup *lookup = ctx;
    struct hint_lookup *job = &lookup->list[index / QUESTIONS];
    int64_t *count = &lookup->counts[node];
    *count = index % QUESTIONS == 0 ? 0 : *count;
    if (v->type == REDIS_STRING) {
        job->has_hint = true;
    } else if (v->type == REDIS_INTEGER) {
        *count += v->integer;
        job->others = *count > job->others ? *count : job->others;
    }
}

enum status hint_lookup(const struct config *config, struct hint_lookup *list, size_t count,
                        struct err *err)
{
    assert(count <= HINT_LOOKUP_MAX);
    struct lookup lookup = {.config = config, .list = list};
    size_t answered = 0;
    autobuf struct buf out = BUF_INIT(REQUEST_BYTES_MAX);
    enum status st = STATUS_OK;
    for (size_t i = 0; st == STATUS_OK && i < count; i++) {
        list[i].has_hint = false;
        list[i].others = 0;
        st = put_questions(&lookup, &list[i], NULL, &out, err);
        if (st == STATUS_OK) {
            st = put_questions(&lookup, &list[i], list[i].kind, &out, err);
        }
    }
    if (st != STATUS_OK) {
        return st;
    }
    const struct redis_ask ask = {.nodes = config->hints.nodes,
                                  .node_count = config->hints.node_count,
                                  .config = config,
                                  .questions = &out,
                                  .question_count = count * QUESTIONS,
                                  .on_reply = on_reply,
                                  .ctx = &lookup};
    st = redis_ask(&ask, &answered, err);
    if (st != STATUS_OK) {
        err_prefix(err, "hints.nodes");
    }
    return st;
}
