/* SPDX-License-Identifier: Apache-2.0
 *
 * Tries plugins out in forked children first, all at once: constructors and init functions may
 * crash, hang or exit, and would take every other plugin's kinds along (fault.G6). */
#ifndef CLAIMD_WORKER_RUNNER_PLUGIN_PROBE_H
#define CLAIMD_WORKER_RUNNER_PLUGIN_PROBE_H

#include "claimd/plugin.h"
#include "worker/protocol.h"
#include "worker/runner/plugin_rules.h"

struct plugin_trial {
    int fd; /* of the file */
    /* The verdict: OK, or INVALID with the reason, or how its child ended. `has_names` where it
     * came far enough to say them. */
    enum status status;
    struct err why;
    bool has_names;
    struct plugin_names names;
    /* of the child */
    pid_t pid;
    int pidfd;
    int in;
    int64_t deadline_us;
    bool is_running;
};

/* Loads, inits and finis each file in a child of its own, and fills the verdicts in. Blocks, at
 * most 5 s for each 16 that hang; counts page->loaded up (NULL: nowhere). Call it before threads
 * are started. */
void plugin_probe_all(struct plugin_trial *trials, size_t count, const struct claimd_host *host,
                      struct runner_page *page);

#endif
