/* SPDX-License-Identifier: Apache-2.0
 *
 * Tries plugins in forked children first, all at once: constructors and init functions may crash,
 * hang or exit, and would take down the kinds of every other plugin (fault.G6). */
#ifndef CLAIMD_RUNNER_PLUGIN_PROBE_H
#define CLAIMD_RUNNER_PLUGIN_PROBE_H

#include "claimd/plugin.h"
#include "protocol/protocol.h"
#include "runner/plugin_rules.h"

struct plugin_trial {
    int fd; /* the plugin's file */
    /* The verdict: OK, or INVALID with the reason or with how the child ended. `has_names`: it got
     * far enough to send its names. */
    enum status status;
    struct err why;
    bool has_names;
    struct plugin_names names;
    /* State of the child. */
    pid_t pid;
    int pidfd;
    int in;
    int64_t deadline_us;
    bool is_running;
};

/* Loads each file in a child of its own, calls its init and fini, and fills in the verdicts.
 * Blocks, at most 5 s for each 16 files that hang. Increments page->loaded per file (`page` may be
 * NULL). Call it before threads are started. */
void plugin_probe_all(struct plugin_trial *trials, size_t count, const struct claimd_host *host,
                      struct runner_page *page);

#endif
