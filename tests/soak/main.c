/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-soak: all features at once under faults, and a verdict. docs/reliability.md. */
#include "soak/backlog.h"
#include "soak/run.h"

#include <stdio.h>

#define EXIT_USAGE 2

int main(int argc, char **argv)
{
    static struct soak_options options;
    struct err err = {0};
    if (soak_options_read(argc, argv, &options, &err) != STATUS_OK) {
        (void)fprintf(stderr, "claimd-soak: %s\n", err.msg);
        return EXIT_USAGE;
    }
    if (options.kit.is_help) {
        (void)fputs(soak_options_usage(), stdout);
        return 0;
    }
    return options.backlog > 0 ? backlog_run(&options) : soak_run(&options);
}
