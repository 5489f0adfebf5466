/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by claimctl apply and claimctl schedules apply: a file is read, checked, and applied in
 * one transaction or not at all. */
#ifndef CLAIMD_CTL_FILE_APPLY_H
#define CLAIMD_CTL_FILE_APPLY_H

#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"

struct file_apply {
    struct admin *a;
    const char *text; /* the content of the file */
    bool is_pruning;
    size_t removed;   /* how many things --prune has removed */
    const char *noun; /* what they are called */
    struct table table;
    const struct table_column *columns; /* of the table */
    size_t column_count;
    enum status (*check)(const char *text, size_t len, struct err *err);
    /* Writes everything in the present transaction, and adds the changes to the table. */
    enum status (*write)(struct file_apply *p, struct err *err);
};

/* Applies the file that args name, with --dry-run, --prune and --yes. Fills in the remaining
 * fields; `text` is valid only during write(). */
enum status file_apply(struct ctl *ctl, const struct ctl_args *args, struct file_apply *p,
                       struct err *err) MUST_USE;

#define auto_file_apply CLEANUP(file_apply_release)
void file_apply_release(struct file_apply *p);

#endif
