/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/danger.h"

int64_t danger_at_us(const struct danger_facts *f, const struct danger_limits *l)
{
    int64_t heartbeat_end = f->heartbeat_sent_us == 0 ? 0 : f->heartbeat_sent_us + l->stale_us;
    return f->lease_deadline_us > heartbeat_end ? f->lease_deadline_us : heartbeat_end;
}

struct danger_verdict danger_verdict(const struct danger_facts *f, const struct danger_limits *l,
                                     int64_t now_us)
{
    int64_t danger = danger_at_us(f, l);
    struct danger_verdict v = {.kill_at_us = danger - l->kill_margin_us, .reason = DANGER_LEASE};
    if (now_us >= v.kill_at_us) {
        v.action = DANGER_KILL;
    } else if (now_us >= f->timeout_at_us + f->grace_us) {
        v.action = DANGER_KILL;
        v.reason = DANGER_TIMEOUT;
    } else if (now_us >= danger - l->guard_us) {
        v.action = DANGER_STOP;
    } else if (now_us >= f->timeout_at_us) {
        v.action = DANGER_STOP;
        v.reason = DANGER_TIMEOUT;
    }
    return v;
}
