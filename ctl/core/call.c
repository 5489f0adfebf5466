/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that are verbs: fills in parameters from the command line, and prints the answer. */
#include "ctl/core/agree.h"
#include "ctl/core/table_text.h"

void ctl_option_name(const char *param, char ret[CTL_NAME_MAX])
{
    (void)snprintf(ret, CTL_NAME_MAX, "--%s", param);
    for (char *c = ret; *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
}

/* Returns the value of a parameter, and the name of its option or word. */
static const char *value_of(const struct ctl_args *args, const char *param, size_t *word,
                            char ret_label[CTL_NAME_MAX])
{
    ctl_option_name(param, ret_label);
    const char *value = ctl_value(args, ret_label + 2);
    if (value != NULL) {
        return value;
    }
    (void)snprintf(ret_label, CTL_NAME_MAX, "%s", param);
    return *word < args->word_count ? args->words[(*word)++] : NULL;
}

static enum status read_call(const struct ctl_args *args, const struct verb *verb,
                             struct ctl_fixed fixed, struct verb_call *ret, struct err *err)
{
    size_t word = 0;
    *ret = (struct verb_call){.verb = verb};
    for (size_t i = 0; i < verb->param_count; i++) {
        char label[CTL_NAME_MAX] = "";
        const char *name = verb->params[i].name;
        bool is_fixed = fixed.param != NULL && strcmp(fixed.param, name) == 0;
        const char *value = is_fixed ? fixed.value : value_of(args, name, &word, label);
        enum status st = verb_set(ret, name, label, value, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* Asks if a person is at the terminal and the verb affects several things. */
static enum status agree(struct ctl *ctl, const struct ctl_args *args, const struct verb_call *call,
                         struct admin *a, struct err *err)
{
    char question[128];
    bool is_dry = ctl_value(args, "dry-run") != NULL;
    if (call->verb->preview == NULL || is_dry || !ctl_is_asking(args)) {
        return STATUS_OK;
    }
    enum status st = verb_preview(call, a, question, sizeof question, err);
    if (st != STATUS_OK || question[0] == '\0') {
        return st;
    }
    return ctl_agree(ctl, args, question);
}

enum status ctl_run_call(struct ctl *ctl, const struct ctl_args *args, const struct verb_call *call,
                         struct err *err)
{
    auto_admin struct admin *a = NULL;
    auto_answer struct answer answer = {.count = 0};
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = agree(ctl, args, call, a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_run(call, a, &answer, err);
    if (st != STATUS_OK) {
        return st;
    }
    return answer_print(&answer, ctl->is_json, ctl->out, err);
}

enum status ctl_call_verb(struct ctl *ctl, const struct ctl_args *args, const struct verb *verb,
                          struct ctl_fixed fixed, struct err *err)
{
    struct verb_call call;
    enum status st = read_call(args, verb, fixed, &call, err);
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_run_call(ctl, args, &call, err);
}

enum status ctl_call(struct ctl *ctl, const struct ctl_args *args,
                     const struct ctl_command *command, struct err *err)
{
    struct verb_call call;
    bool is_short = command->short_act != NULL && args->word_count < command->words_max;
    if (command->no_option != NULL && args->given_count == 0) {
        return err_fail(err, STATUS_INVALID, "%s", command->no_option);
    }
    enum status st = read_call(args, command->act, command->fixed, &call, err);
    if (st == STATUS_OK && is_short) {
        return ctl_call_verb(ctl, args, command->short_act, command->fixed, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_run_call(ctl, args, &call, err);
}
