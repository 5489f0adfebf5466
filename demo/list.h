/* SPDX-License-Identifier: Apache-2.0
 *
 * The input of the demo: files of installed packages, and the MD5 sums that dpkg has stored for
 * them. */
#ifndef CLAIMD_DEMO_LIST_H
#define CLAIMD_DEMO_LIST_H

#include "base/err.h"

#include <stddef.h>

struct list_entry {
    char md5[33];
    char *path; /* absolute */
};

struct list {
    struct list_entry *entries;
    size_t count;
    size_t left_out; /* not readable for all users, or with a name that md5sum would escape */
};

/* Reads all entries of /var/lib/dpkg/info, or, with `max` > 0, that many, spread evenly over them.
 * A file that has vanished stays in the list: it is "missing" for claimd and for md5sum. */
enum status list_read(size_t max, struct list *ret, struct err *err) MUST_USE;
void list_release(struct list *l);

/* Writes one line per entry, in their order, for `md5sum -c` and for `claimctl enqueue --file`. */
enum status list_write_md5(const struct list *l, const char *path, struct err *err) MUST_USE;
enum status list_write_jobs(const struct list *l, const char *path, struct err *err) MUST_USE;

#endif
