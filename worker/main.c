/* SPDX-License-Identifier: Apache-2.0
 *
 * The program claimd-worker: its command line. */
#include "daemon/daemon.h"
#include "worker/worker.h"

int main(int argc, char **argv)
{
    static const struct daemon_program program = {
        .name = "claimd-worker",
        .what = "Takes due jobs, runs their handlers and marks the result. One per host.\n"
                "Signals: TERM and INT drain, a second one stops now; USR1 takes no new jobs.\n",
        .run = worker_main};
    return daemon_main(&program, argc, argv);
}
