/* SPDX-License-Identifier: Apache-2.0
 *
 * The help of claimctl, all of it made from the table of commands. */
#ifndef CLAIMD_CTL_HELP_H
#define CLAIMD_CTL_HELP_H

#include "ctl/core/ctl.h"

void help_overview(FILE *out, const struct ctl *ctl);
void help_command(FILE *out, const struct ctl_command *c);
/* Prints all commands of one noun, which must exist. */
void help_noun(FILE *out, const char *noun);

/* Prints "claimctl jobs list". */
void help_print_name(FILE *out, const struct ctl_command *c);

bool help_is_noun(const char *word);
/* Finds the command of these words, else that of the noun alone; NULL = none. `verb` may be "". */
const struct ctl_command *help_find(const char *noun, const char *verb);

/* Prints one line to stderr: the unknown word, the nearest known one, and all known ones. */
void help_unknown_command(const char *noun, const char *verb);
/* Sets INVALID: the command (NULL: claimctl itself) has no such option; names the nearest one, and
 * all of them. */
enum status help_unknown_option(const struct ctl_command *c, const char *name, struct err *err);

#endif
