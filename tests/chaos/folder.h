/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of a run: everything that a verdict needs, as files of JSON lines. docs/reliability.md
 * describes each file; claimd-chaos-check reads the same files. */
#ifndef CLAIMD_TESTS_CHAOS_FOLDER_H
#define CLAIMD_TESTS_CHAOS_FOLDER_H

#include "base/err.h"
#include "cluster/servers.h"

#include <jansson.h>

#define NS_PER_US 1000 /* "t" of a line is in ns */

struct folder {
    char path[SERVER_PATH_MAX];
};

/* Makes the folder with its subfolders, writable for the servers' user; "" = a new folder with a
 * generated name. */
enum status folder_make(const char *wanted, struct folder *ret, struct err *err) MUST_USE;
void folder_at(const struct folder *f, const char *name, char *ret_path, size_t size);

/* A file that is only appended to, with one write() per line, so that it survives our own death. */
struct journal {
    int fd;
};

enum status journal_open(const struct folder *f, const char *name, struct journal *ret,
                         struct err *err) MUST_USE;
void journal_close(struct journal *j);
/* Takes ownership of `line`, an object. Adds "t", the time in ns of CLOCK_BOOTTIME, if it has
 * none. */
void journal_write(struct journal *j, json_t *line);

/* Calls `each` for every line of a file, and lends it the line. A line that is not a JSON object is
 * INVALID, unless it is the last one, whose writer was killed. A missing file has no lines. */
typedef void folder_line_fn(void *ctx, const json_t *line);
enum status folder_read(const struct folder *f, const char *name, folder_line_fn *each, void *ctx,
                        struct err *err) MUST_USE;

#endif
