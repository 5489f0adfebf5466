/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl. */
#include "ctl/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
