/* SPDX-License-Identifier: Apache-2.0
 *
 * From words to a command, and from its status to the exit code. */
#ifndef CLAIMD_CTL_CLI_H
#define CLAIMD_CTL_CLI_H

int cli_main(int argc, char **argv);

#endif
