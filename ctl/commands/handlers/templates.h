/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the projects that `claimctl handler new` makes: those in sdk/templates, and files of
 * the SDK. */
#ifndef CLAIMD_CTL_HANDLERS_TEMPLATES_H
#define CLAIMD_CTL_HANDLERS_TEMPLATES_H

/* NAME in a path is replaced, and @NAME@, @DIR@, @FILE@ and @VERSION@ in a text. A text that begins
 * with #! becomes executable. */
struct handler_template {
    const char *language;
    const char *path;
    const char *text;
};

/* Sorted by language; ends with a NULL. */
extern const struct handler_template handler_templates[];

#endif
