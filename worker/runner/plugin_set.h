/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugins of one directory: which kinds they serve, and why the other files don't. A bad file
 * is refused with a reason and never stops the others. */
#ifndef CLAIMD_WORKER_RUNNER_PLUGIN_SET_H
#define CLAIMD_WORKER_RUNNER_PLUGIN_SET_H

#include "base/err.h"
#include "claimd/plugin.h"
#include "worker/protocol.h"
#include "worker/runner/plugin_rules.h"

#include <jansson.h>

struct plugin_set {
    struct claimd_plugin *plugins; /* PLUGINS_MAX of them */
    size_t count;
    const struct plugin_set_options *options;
    size_t doubtful_next; /* of options->doubtful */
    json_t *refused;      /* [{"file", "reason"}] */
    struct plugin_owners owners;
};

struct plugin_set_options {
    const char *directory;
    struct plugin_owners owners;
    /* Files that are passed over: they ended an earlier runner, and the worker has said so. */
    const char *without[PLUGINS_MAX];
    const char *reasons[PLUGINS_MAX]; /* of those: the file is refused with it; NULL = not a word */
    size_t without_count;
    const char *handlers; /* the folder of files for programs; NULL or "" = none */
    /* Of those, such whose programs could not be started before. */
    const char *doubtful[PLUGINS_MAX];
    size_t doubtful_count;
    struct runner_page *page; /* where to say which file is being loaded; NULL = nowhere */
};

/* Loads every *.so in the order of their names, then every *.json of `handlers`; a kind belongs to
 * the first that has it. Only NOMEM fails: an unusable directory or file is a refusal. Blocks while
 * files are tried out. `options` must outlive the set. */
enum status plugin_set_open(struct plugin_set *set, const struct plugin_set_options *options,
                            struct err *err) MUST_USE;
void plugin_set_close(struct plugin_set *set); /* calls each fini */

/* NULL when nobody serves it. */
const struct claimd_kind *plugin_set_find(const struct plugin_set *set, const char *kind,
                                          size_t len);

/* The next of those in doubt that are served, each once; NULL = there is none. */
const struct claimd_kind *plugin_set_doubtful(struct plugin_set *set);

/* Takes all kinds of this one's program out: its file is refused for this reason. */
enum status plugin_set_withdraw(struct plugin_set *set, const struct claimd_kind *kind,
                                const char *reason, struct err *err) MUST_USE;

/* The body of HELLO (worker/protocol.h); the caller frees it. */
enum status plugin_set_describe(const struct plugin_set *set, char **ret_json,
                                struct err *err) MUST_USE;

#endif
