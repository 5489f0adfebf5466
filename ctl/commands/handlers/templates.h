/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the projects that `claimctl handler new` makes: those in sdk/templates, and of the
 * SDK. */
#ifndef CLAIMD_CTL_HANDLERS_TEMPLATES_H
#define CLAIMD_CTL_HANDLERS_TEMPLATES_H

/* NAME in a path, and @NAME@, @DIR@, @FILE@ and @VERSION@ in a text, are filled in. A text that
 * begins with #! may be executed. */
struct handler_template {
    const char *language;
    const char *path;
    const char *text;
};

/* By language; a NULL ends them. */
extern const struct handler_template handler_templates[];

#endif
