/* SPDX-License-Identifier: Apache-2.0
 *
 * What claimctl says about itself, all of it from the table of commands. */
#ifndef CLAIMD_CTL_HELP_H
#define CLAIMD_CTL_HELP_H

#include "ctl/core/ctl.h"

void help_overview(FILE *out, const struct ctl *ctl);
void help_command(FILE *out, const struct ctl_command *c);
/* All commands of one noun; `noun` must be known. */
void help_noun(FILE *out, const char *noun);

/* "claimctl jobs list" */
void help_print_name(FILE *out, const struct ctl_command *c);

bool help_is_noun(const char *word);
/* The command of these words, else that of the noun alone; NULL = none. `verb` may be "". */
const struct ctl_command *help_find(const char *noun, const char *verb);

/* One line to stderr: what is unknown, the nearest, all that are known. */
void help_unknown_command(const char *noun, const char *verb);
/* INVALID: this command (NULL: claimctl itself) has no such option; the nearest, and all it has. */
enum status help_unknown_option(const struct ctl_command *c, const char *name, struct err *err);

#endif
