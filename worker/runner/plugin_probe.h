/* SPDX-License-Identifier: Apache-2.0
 *
 * Tries a step out in a forked child first: constructors and init functions of a plugin may crash,
 * hang or exit, and would take every other plugin's kinds along (fault.G6). */
#ifndef CLAIMD_WORKER_RUNNER_PLUGIN_PROBE_H
#define CLAIMD_WORKER_RUNNER_PLUGIN_PROBE_H

#include "base/err.h"

/* In the child: OK, or *err says why not. */
typedef enum status plugin_probe_fn(void *ctx, struct err *err);

/* OK when `step` said so in a child; else INVALID with its reason, or with how the child ended.
 * Blocks, at most 5 s. Call it before threads are started. */
enum status plugin_probe(plugin_probe_fn *step, void *ctx, struct err *err) MUST_USE;

#endif
