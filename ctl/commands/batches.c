/* SPDX-License-Identifier: Apache-2.0
 *
 * What is more than a verb of claimctl batches; batches cancel is in jobs/jobs_act.c. */
#include "base/parse.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "ctl/options/args_file.h"
#include "ctl/options/id_list.h"
#include "ctl/options/job_check.h"

#define IDS_BYTES_MAX ((size_t)64 << 10)

/* The words behind the first. */
static enum status read_ids(const struct ctl_args *args, struct buf *out, struct err *err)
{
    for (size_t i = 1; i < args->word_count; i++) {
        const char *word = args->words[i];
        int64_t id = 0;
        enum status st = parse_i64(word, strlen(word), 1, INT64_MAX, &id, err);
        if (st != STATUS_OK) {
            err_prefix(err, "job '%.32s'", word);
            return st;
        }
        st = id_list_add(out, id, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return id_list_end(out, err);
}

/* Only tried: the session ends, and the transaction with it. */
static enum status try_add(struct ctl *ctl, const struct verb_call *call, struct err *err)
{
    auto_admin struct admin *a = NULL;
    auto_answer struct answer answer = {.count = 0};
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_exec(a, "BEGIN", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_run(call, a, &answer, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(answer.says, sizeof answer.says, "batch %s: %s jobs would be in it",
                   call->params[0], table_value(&answer.tables[0], 0, "jobs"));
    return answer_print(&answer, ctl->is_json, ctl->out, err);
}

enum status batches_add(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    autobuf struct buf ids = BUF_INIT(IDS_BYTES_MAX);
    struct verb_call call = {.verb = &VERB_BATCH_ADD};
    enum status st = read_ids(args, &ids, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_set(&call, "batch", "batch", args->words[0], err);
    if (st == STATUS_OK) {
        st = verb_set(&call, "ids", "ids", buf_at(&ids), err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_value(args, "dry-run") != NULL ? try_add(ctl, &call, err)
                                              : ctl_run_call(ctl, args, &call, err);
}

/* A job that follows the batch. What else is wrong with it, the server says. */
static enum status read_job(const struct ctl_args *args, const char *option, struct buf *room,
                            const char **ret_json, struct err *err)
{
    char place[32];
    enum status st = args_file_read(option, ctl_value(args, option), room, ret_json, err);
    if (st != STATUS_OK || *ret_json == NULL) {
        return st;
    }
    (void)snprintf(place, sizeof place, "--%s: ", option);
    return job_json_check(place, *ret_json, strlen(*ret_json), err);
}

enum status batches_open(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const char *const options[] = {"follow-up", "on-success", "on-failure"};
    autobuf struct buf follow_up = BUF_INIT(0);
    autobuf struct buf on_success = BUF_INIT(0);
    autobuf struct buf on_failure = BUF_INIT(0);
    struct buf *rooms[] = {&follow_up, &on_success, &on_failure};
    struct verb_call call = {.verb = &VERB_BATCH_OPEN,
                             .params = {args->word_count > 0 ? args->words[0] : NULL}};
    for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
        enum status st = read_job(args, options[i], rooms[i], &call.params[1 + i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return ctl_run_call(ctl, args, &call, err);
}
