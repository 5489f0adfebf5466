/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/core/agree.h"

#include <stdio.h>
#include <unistd.h>

bool ctl_is_asking(const struct ctl_args *args)
{
    return ctl_value(args, "yes") == NULL && isatty(STDIN_FILENO) == 1;
}

enum status ctl_agree(struct ctl *ctl, const struct ctl_args *args, const char *question)
{
    char answer[16] = "";
    if (!ctl_is_asking(args)) {
        return STATUS_OK;
    }
    (void)fprintf(stderr, "%s Go on? [y/N] ", question);
    (void)fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y')) {
        return STATUS_OK;
    }
    (void)fprintf(stderr, "nothing was done\n");
    ctl->is_declined = true;
    return STATUS_CONFLICT;
}
