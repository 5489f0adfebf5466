/* SPDX-License-Identifier: Apache-2.0
 *
 * What plugins and handler files have to keep alike: whose they are, what a kind may have, and that
 * each kind has one handler. claimctl checks files by it, too. */
#ifndef CLAIMD_WORKER_RUNNER_PLUGIN_RULES_H
#define CLAIMD_WORKER_RUNNER_PLUGIN_RULES_H

#include "base/err.h"
#include "claimd/plugin.h"
#include "model/job.h"

#include <stdint.h>
#include <sys/types.h>

#define PLUGINS_MAX 64 /* of both together */
#define PLUGIN_OWNERS_MAX 16

/* Whose files are trusted. None = root and the user that we run as. */
struct plugin_owners {
    uid_t list[PLUGIN_OWNERS_MAX];
    size_t count;
};

/* "0,1000". INVALID. */
enum status plugin_owners_parse(const char *text, struct plugin_owners *ret,
                                struct err *err) MUST_USE;

/* ---- files ---- */
/* A folder of such files, by its path. UNAVAILABLE: it can't be opened. INVALID: its owner or mode
 * is none for files. The caller closes it. */
enum status plugin_open_folder(const char *path, const struct plugin_owners *owners, int *ret_fd,
                               struct err *err) MUST_USE;

/* One of its files, for reading, never through a link. INVALID. The caller closes it. */
enum status plugin_open(int directory, const char *file, int *ret_fd, struct err *err) MUST_USE;

/* Regular, of one of these owners, not writable by others: INVALID, UNAVAILABLE. */
enum status plugin_regular_check(int fd, const struct plugin_owners *owners, off_t *ret_size,
                                 struct err *err) MUST_USE;

/* ---- kinds ---- */
/* Of CLAIMD_KINDS_MAX kinds: validates all but `handle` and replaces numbers of 0 by their
 * defaults; an unnamed kind ends the list, what is behind it becomes zero. */
enum status plugin_kinds_accept(struct claimd_kind *kinds, struct err *err) MUST_USE;

/* What must be unique among plugins. "" ends the kinds. */
struct plugin_names {
    char plugin[JOB_NAME_MAX + 1];
    char kinds[CLAIMD_KINDS_MAX][JOB_NAME_MAX + 1];
};

/* INVALID: one of `others` is of that name, or has one of the kinds. */
enum status plugin_names_check(const struct plugin_names *names, const struct claimd_plugin *others,
                               size_t count, struct err *err) MUST_USE;

#endif
