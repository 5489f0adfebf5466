/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of claimctl batches that are more than a verb; batches cancel is in
 * jobs/jobs_act.c. */
#include "base/parse.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "ctl/options/given.h"
#include "ctl/options/id_list.h"
#include "ctl/options/job_check.h"

#define IDS_BYTES_MAX ((size_t)64 << 10)

/* Reads the ids: all words but the first. */
static enum status read_ids(const struct ctl_args *args, struct text *out, struct err *err)
{
    for (size_t i = 1; i < args->word_count; i++) {
        const char *word = args->words[i];
        int64_t id = 0;
        enum status st = parse_i64(word, strlen(word), 1, INT64_MAX, &id, err);
        if (st != STATUS_OK) {
            err_prefix(err, "job '%.32s'", word);
            return st;
        }
        id_list_add(out, id);
    }
    id_list_end(out);
    return text_end(out, err);
}

/* Does not commit: the transaction ends with the session. */
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
    autotext struct text ids = TEXT_INIT(IDS_BYTES_MAX);
    struct verb_call call = {.verb = &VERB_BATCH_ADD};
    enum status st = read_ids(args, &ids, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_set(&call, "batch", "batch", args->words[0], err);
    if (st == STATUS_OK) {
        st = verb_set(&call, "ids", "ids", text_str(&ids), err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_value(args, "dry-run") != NULL ? try_add(ctl, &call, err)
                                              : ctl_run_call(ctl, args, &call, err);
}

/* Reads the jobs that follow the batch. The server reports all other mistakes in them. */
enum status batches_open(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_given struct given given = GIVEN(args, err);
    struct verb_call call = {.verb = &VERB_BATCH_OPEN};
    verb_put(&call, "name", args->word_count > 0 ? args->words[0] : NULL);
    for (size_t i = 1; i < call.verb->param_count; i++) {
        char option[CTL_NAME_MAX];
        char place[CTL_NAME_MAX + 2];
        ctl_option_name(call.verb->params[i].name, option);
        (void)snprintf(place, sizeof place, "%s: ", option);
        const char *json = given_json(&given, option + 2, NULL);
        if (json != NULL) {
            (void)!job_json_check(place, json, strlen(json), err);
        }
        call.params[i] = json;
    }
    if (err->status != STATUS_OK) {
        return err->status;
    }
    return ctl_run_call(ctl, args, &call, err);
}
