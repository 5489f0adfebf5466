/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the command for the words of the command line, runs it, and maps its status to the exit
 * code. */
#ifndef CLAIMD_CTL_CLI_H
#define CLAIMD_CTL_CLI_H

int cli_main(int argc, char **argv);

#endif
