/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules that plugins and handler files share: who owns them, what a kind may have, and that each
 * kind has one handler. claimctl also checks files by them. */
#ifndef CLAIMD_RUNNER_PLUGIN_RULES_H
#define CLAIMD_RUNNER_PLUGIN_RULES_H

#include "base/err.h"
#include "claimd/plugin.h"
#include "model/job.h"

#include <stdint.h>
#include <sys/types.h>

#define PLUGINS_MAX 64 /* plugins and handler files together */
#define PLUGIN_OWNERS_MAX 16

/* Users whose files are trusted. None = root and the user of this process. */
struct plugin_owners {
    uid_t list[PLUGIN_OWNERS_MAX];
    size_t count;
};

/* Parses a list such as "0,1000". INVALID. */
enum status plugin_owners_parse(const char *text, struct plugin_owners *ret,
                                struct err *err) MUST_USE;

/* ---- files ---- */
/* Opens a folder of such files. UNAVAILABLE: it can't be opened. INVALID: its owner or mode is not
 * allowed. The caller closes it. */
enum status plugin_open_folder(const char *path, const struct plugin_owners *owners, int *ret_fd,
                               struct err *err) MUST_USE;

/* Opens one of its files for reading, never through a link. INVALID. The caller closes it. */
enum status plugin_open(int directory, const char *file, int *ret_fd, struct err *err) MUST_USE;

/* Checks that it is a regular file, belongs to one of these owners and is not writable by others:
 * INVALID, UNAVAILABLE. */
enum status plugin_regular_check(int fd, const struct plugin_owners *owners, off_t *ret_size,
                                 struct err *err) MUST_USE;

/* ---- kinds ---- */
/* Validates CLAIMD_KINDS_MAX kinds, except `handle`, and replaces numbers of 0 by their defaults.
 * An unnamed kind ends the list; those after it are set to zero. */
enum status plugin_kinds_accept(struct claimd_kind *kinds, struct err *err) MUST_USE;

/* The names that must be unique among plugins. "" ends the kinds. */
struct plugin_names {
    char plugin[JOB_NAME_MAX + 1];
    char kinds[CLAIMD_KINDS_MAX][JOB_NAME_MAX + 1];
};

/* INVALID: one of `others` has that name or one of the kinds. */
enum status plugin_names_check(const struct plugin_names *names, const struct claimd_plugin *others,
                               size_t count, struct err *err) MUST_USE;

#endif
