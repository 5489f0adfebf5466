/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/jobs/act.h"

#include "ctl/options/filter.h"

bool act_is_end(const struct err *why)
{
    if (why->status == STATUS_TIMEOUT) {
        return why->code[0] == '\0'; /* with a code, it is the lock_timeout of one job */
    }
    if (why->status == STATUS_INTERNAL) {
        return strcmp(why->code, "40P01") != 0; /* a deadlock */
    }
    return why->status == STATUS_UNAVAILABLE || why->status == STATUS_UNKNOWN;
}

static int weight(enum status st)
{
    if (st == STATUS_OK) {
        return 0;
    }
    if (st == STATUS_NOT_FOUND) {
        return 1;
    }
    return st == STATUS_CONFLICT ? 2 : 3;
}

enum status act_worse(enum status a, enum status b)
{
    return weight(a) > weight(b) ? a : b;
}

void act_parameters(const struct act *act, const char *first,
                    const char *ret_params[1 + ACT_PARAMETERS_MAX])
{
    ret_params[0] = first;
    memcpy(&ret_params[1], act->parameters, sizeof act->parameters);
}

enum status act_run(struct ctl *ctl, const struct ctl_args *args, const struct act *act,
                    struct err *err)
{
    bool is_filter = filter_is_given(args);
    if (args->word_count > 0 && is_filter) {
        return err_fail(err, STATUS_INVALID, "give either ids or options that choose jobs");
    }
    if (args->word_count > 0 && ctl_value(args, "limit") != NULL) {
        return err_fail(err, STATUS_INVALID,
                        "--limit: is only for options that choose jobs, not for ids");
    }
    if (args->word_count == 0 && !is_filter) {
        return err_fail(err, STATUS_INVALID,
                        "which jobs? Name their ids, or choose them with options such as --kind");
    }
    return is_filter ? act_on_matches(ctl, args, act, err) : act_on_ids(ctl, args, act, err);
}
