/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of claimctl apply, except its schedules: {"queues": {NAME: {…}}, "kinds": {NAME: {…}},
 * "keys": {KEY: {…}}}. Pure. */
#ifndef CLAIMD_CTL_APPLY_FILE_H
#define CLAIMD_CTL_APPLY_FILE_H

#include "base/buf.h"

enum apply_section { APPLY_QUEUES, APPLY_KINDS, APPLY_KEYS, APPLY_SECTIONS };

const char *apply_section_key(enum apply_section section);  /* "queues" */
const char *apply_section_noun(enum apply_section section); /* "queue" */

/* Appends {"weight": null, …}: the fields that --prune resets if the file does not name them. A
 * pause is not among them: a queue that was paused in the meantime was paused for a reason. */
enum status apply_section_blank(enum apply_section section, struct buf *out,
                                struct err *err) MUST_USE;

/* Checks the text of a file: duplicate and unknown keys, types, forms. INVALID names the place.
 * Leaves to the schema what it checks better (ranges, names). */
enum status apply_file_check(const char *text, size_t len, struct err *err) MUST_USE;

#endif
