/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/intake.h"

enum status intake_open(struct intake *in, const struct intake_env *env, struct err *err)
{
    in->env = *env;
    fetch_configure(in);
    enum status st = limits_open(in, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = held_hints_open(in, err);
    if (st != STATUS_OK) {
        return st;
    }
    return hint_return_open(in, err);
}

void intake_close(struct intake *in)
{
    hint_return_close(in);
    limits_close(in);
    held_hints_close(in);
}

bool intake_is_idle(const struct intake *in)
{
    return held_hints_is_idle(in) && sift_is_idle(in) && hint_return_is_idle(in);
}
