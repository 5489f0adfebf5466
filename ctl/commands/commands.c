/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands, from which parsing, help, completion and the manual page are made. Its
 * rows are in commands_….c, by noun. */
#include "ctl/core/ctl.h"

/* In the order of the help. */
static const struct ctl_command_list *const lists[] = {
    &ctl_db_commands,    &ctl_job_commands,     &ctl_map_commands,
    &ctl_queue_commands, &ctl_cluster_commands,
};

size_t ctl_command_count(void)
{
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
        count += lists[i]->count;
    }
    return count;
}

const struct ctl_command *ctl_command_at(size_t i)
{
    size_t list = 0;
    while (i >= lists[list]->count) {
        i -= lists[list]->count;
        list++;
    }
    return &lists[list]->rows[i];
}

const struct ctl_option ctl_common_options[] = {
    {"config", "FILE",
     "configuration; else $CLAIMD_CONFIG, else " CTL_CONFIG_STANDARD_PATH " if it is there, else "
     "defaults and environment"},
    {"json", NULL, "print JSON"},
    {"help", NULL, "show this help"},
    {"version", NULL, "show the version"},
};
const size_t ctl_common_option_count = ARRAY_COUNT(ctl_common_options);
