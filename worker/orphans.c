/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/orphans.h"

#include "base/clock.h"
#include "worker/worker.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define LOOK_US (1 * US_PER_S)
#define END_ROUNDS 100
#define END_PAUSE_MS 10

enum status orphans_open(struct worker *w, struct err *err)
{
    (void)w;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "PR_SET_CHILD_SUBREAPER");
    }
    return STATUS_OK;
}

static bool is_runner(const struct worker *w, pid_t pid)
{
    for (size_t i = 0; w != NULL && i < w->slot_count; i++) {
        if (slot_pid(w->slots[i]) == pid) {
            return true;
        }
    }
    return false;
}

/* Returns how many there were. */
static size_t end_listed(const struct worker *w)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *list = fopen(path, "re");
    size_t count = 0;
    char word[16];
    while (list != NULL && fscanf(list, "%15s", word) == 1) {
        pid_t child = (pid_t)strtol(word, NULL, 10);
        if (child > 1 && !is_runner(w, child)) {
            (void)kill(child, SIGKILL);
            (void)waitpid(child, NULL, WNOHANG);
            count++;
        }
    }
    if (list != NULL) {
        (void)fclose(list);
    }
    return count;
}

void orphans_tick(struct worker *w, int64_t now_us)
{
    if (now_us >= w->orphans_at_us) {
        w->orphans_at_us = now_us + LOOK_US;
        (void)end_listed(w);
    }
}

void orphans_end_all(void)
{
    const struct timespec pause = {.tv_nsec = END_PAUSE_MS * 1000000L};
    for (int round = 0; round < END_ROUNDS && end_listed(NULL) > 0; round++) {
        (void)nanosleep(&pause, NULL);
    }
}
