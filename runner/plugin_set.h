/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugins and programs of a runner: the kinds that they serve, and why other files are refused.
 * A bad file is refused with a reason and never stops the others. */
#ifndef CLAIMD_RUNNER_PLUGIN_SET_H
#define CLAIMD_RUNNER_PLUGIN_SET_H

#include "base/err.h"
#include "claimd/plugin.h"
#include "protocol/protocol.h"
#include "runner/plugin_rules.h"

#include <jansson.h>

struct plugin_set {
    struct claimd_plugin *plugins; /* room for PLUGINS_MAX */
    size_t count;
    const struct plugin_set_options *options;
    size_t doubtful_next; /* index into options->doubtful */
    json_t *refused;      /* [{"file", "reason"}] */
    struct plugin_owners owners;
};

struct plugin_set_options {
    const char *directory;
    struct plugin_owners owners;
    /* Files to skip: they ended an earlier runner, and the worker has reported that. */
    const char *without[PLUGINS_MAX];
    const char *reasons[PLUGINS_MAX]; /* why each of those is refused; NULL = say nothing */
    size_t without_count;
    const char *handlers; /* folder of handler files for programs; NULL or "" = none */
    /* Handler files whose programs could not be started before. */
    const char *doubtful[PLUGINS_MAX];
    size_t doubtful_count;
    const char *commands;     /* worker.commands, as JSON; NULL = none */
    struct runner_page *page; /* where to note the file that is being loaded; NULL = nowhere */
};

/* Loads every *.so, sorted by name, then every *.json of `handlers`, then the commands; a kind
 * belongs to the first that has it. Fails only with NOMEM: an unusable directory or file is a
 * refusal. Blocks while files are tried. `options` must outlive the set. */
enum status plugin_set_open(struct plugin_set *set, const struct plugin_set_options *options,
                            struct err *err) MUST_USE;
void plugin_set_close(struct plugin_set *set); /* calls each fini */

/* Returns NULL if the kind is not served. */
const struct claimd_kind *plugin_set_find(const struct plugin_set *set, const char *kind,
                                          size_t len);

/* Returns a kind of the next doubtful file that is served, once per file; NULL = there is none. */
const struct claimd_kind *plugin_set_doubtful(struct plugin_set *set);

/* Withdraws all kinds of the program that serves this one; its file is refused for this reason. */
enum status plugin_set_withdraw(struct plugin_set *set, const struct claimd_kind *kind,
                                const char *reason, struct err *err) MUST_USE;

/* Returns the body of HELLO (protocol/protocol.h); the caller frees it. */
enum status plugin_set_describe(const struct plugin_set *set, char **ret_json,
                                struct err *err) MUST_USE;

#endif
