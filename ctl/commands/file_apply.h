/* SPDX-License-Identifier: Apache-2.0
 *
 * What claimctl apply and claimctl schedules apply share: a file is read and checked, and applied
 * in one transaction or not at all. */
#ifndef CLAIMD_CTL_FILE_APPLY_H
#define CLAIMD_CTL_FILE_APPLY_H

#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"

struct file_apply {
    struct admin *a;
    const char *text; /* of the file */
    bool is_pruning;
    size_t removed;   /* by --prune */
    const char *noun; /* of what that is */
    struct table table;
    const struct table_column *columns; /* of the table */
    size_t column_count;
    enum status (*check)(const char *text, size_t len, struct err *err);
    /* Writes all of it, in a transaction, and adds what that changes to the table. */
    enum status (*write)(struct file_apply *p, struct err *err);
};

/* By args: the file, --dry-run, --prune and --yes. Fills in the rest; text only for write(). */
enum status file_apply(struct ctl *ctl, const struct ctl_args *args, struct file_apply *p,
                       struct err *err) MUST_USE;

#define auto_file_apply CLEANUP(file_apply_release)
void file_apply_release(struct file_apply *p);

#endif
