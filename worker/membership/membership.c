/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/membership/membership.h"

enum status membership_open(struct membership *m, const struct membership_env *env, struct err *err)
{
    m->env = *env;
    enum status st = kinds_open(m, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = registration_open(m, err);
    if (st != STATUS_OK) {
        return st;
    }
    return heartbeat_open(m, err);
}

void membership_close(struct membership *m)
{
    heartbeat_close(m);
    registration_close(m);
}

void membership_release(struct membership *m)
{
    kinds_close(m);
}
