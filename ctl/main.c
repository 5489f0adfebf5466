/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl. */
#include "ctl/core/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
