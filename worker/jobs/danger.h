/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when a running handler must end. Pure. Others can move a job of this worker only when
 * both witnesses are gone, its lease and the worker's heartbeat, so its moment of danger is the
 * later of the two ends (ARCHITECTURE §4.8, INTERFACES "Numbers"). */
#ifndef CLAIMD_WORKER_JOBS_DANGER_H
#define CLAIMD_WORKER_JOBS_DANGER_H

#include <stdbool.h>
#include <stdint.h>

struct danger_limits {
    int64_t guard_us;
    int64_t kill_margin_us;
    int64_t stale_us;
};

struct danger_facts {
    int64_t lease_deadline_us;
    int64_t heartbeat_sent_us; /* sending time of the last confirmed heartbeat; 0 = none */
    int64_t timeout_at_us;
    int64_t grace_us; /* from the timeout until the kill */
};

enum danger_action { DANGER_NONE, DANGER_STOP, DANGER_KILL };
enum danger_reason { DANGER_LEASE, DANGER_TIMEOUT };

struct danger_verdict {
    enum danger_action action;
    enum danger_reason reason;
    int64_t kill_at_us; /* goes to the shared page; the runner also ends itself then (fault.A4) */
};

int64_t danger_at_us(const struct danger_facts *f, const struct danger_limits *l);
struct danger_verdict danger_verdict(const struct danger_facts *f, const struct danger_limits *l,
                                     int64_t now_us);

#endif
