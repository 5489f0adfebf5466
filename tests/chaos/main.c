/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-chaos: runs real processes under random faults from a seed, and judges the result. See
 * docs/reliability.md. */
#include "chaos/drawn.h"
#include "chaos/nemesis.h"
#include "chaos/run.h"

#include <stdio.h>

#define EXIT_USAGE 2

int main(int argc, char **argv)
{
    static struct options options;
    struct err err = {0};
    if (options_read(argc, argv, &options, &err) != STATUS_OK) {
        (void)fprintf(stderr, "claimd-chaos: %s\n", err.msg);
        return EXIT_USAGE;
    }
    if (options.is_help) {
        (void)fputs(options_usage(), stdout);
        return 0;
    }
    if (options.is_list && options.world > 0) {
        static struct drawn drawn;
        drawn_draw(&drawn, options.world);
        drawn_print(&drawn);
        return 0;
    }
    if (options.is_list) {
        nemeses_list();
        return 0;
    }
    return options.replay[0] != '\0' ? run_replay(&options) : run_storm(&options);
}
