/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin file, from its descriptor to a checked copy of its description (fault.J5). Nothing is
 * ever dlclosed and the descriptor stays open: strings and handlers are borrowed from the mapped
 * file until the process ends, and dlopen() identifies files by their path, here /proc/self/fd/N,
 * so N must not be used again. */
#ifndef CLAIMD_RUNNER_PLUGIN_FILE_H
#define CLAIMD_RUNNER_PLUGIN_FILE_H

#include "runner/plugin_rules.h"

/* Checks that the file is regular, belongs to one of these owners, is not writable by others, and
 * is a complete shared object: INVALID, UNAVAILABLE. Runs no code of the file. */
enum status plugin_file_check(int fd, const struct plugin_owners *owners, struct err *err) MUST_USE;

/* Maps the file (its constructors run) and validates every field. Kinds that the plugin leaves out
 * are zero in *ret_plugin; numbers of 0 are replaced by their defaults. */
enum status plugin_file_load(int fd, struct claimd_plugin *ret_plugin, struct err *err) MUST_USE;

/* ---- elf_check.c ---- */
/* INVALID: *err says what was found and what is wanted. UNAVAILABLE: the file can't be read. */
enum status elf_check(int fd, int64_t size_bytes, struct err *err) MUST_USE;

#endif
