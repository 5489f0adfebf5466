/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/slots/orphans.h"

#include "base/clock.h"
#include "base/proc.h"
#include "worker/slots/slots.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LOOK_US (1 * US_PER_S)

enum status orphans_open(struct err *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "PR_SET_CHILD_SUBREAPER");
    }
    return STATUS_OK;
}

static bool is_runner(const struct slots *s, pid_t pid)
{
    for (size_t i = 0; i < s->count; i++) {
        if (slot_pid(s->list[i]) == pid) {
            return true;
        }
    }
    return false;
}

static bool end_orphan(void *slots, pid_t child)
{
    if (is_runner(slots, child)) {
        return false;
    }
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, WNOHANG);
    return true;
}

void orphans_tick(struct slots *s, int64_t now_us)
{
    if (now_us >= s->orphans_at_us) {
        s->orphans_at_us = now_us + LOOK_US;
        (void)proc_each_child(end_orphan, s);
    }
}
