/* SPDX-License-Identifier: Apache-2.0
 *
 * The main program of claimd-scheduler. */
#include "daemon/daemon.h"
#include "scheduler/scheduler.h"

int main(int argc, char **argv)
{
    static const struct daemon_program program = {
        .name = "claimd-scheduler",
        .what = "Feeds due jobs to the workers, rescues those of dead workers, keeps the history's "
                "days.\n"
                "Run two or three: one leads, the others stand by.\n"
                "Signals: TERM and INT step down and end, a second one ends now.\n",
        .run = scheduler_main};
    return daemon_main(&program, argc, argv);
}
