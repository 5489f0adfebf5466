/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that are programs (docs/handler-protocol.md, docs/decisions/0034): one process for each
 * file of worker.handlers, started with the first job of its kinds and then used for job after job.
 * A program that dies or breaks the protocol while it has a job takes this runner with it, and the
 * page says why: so it costs that attempt, as a crash of a plugin does. Between jobs it costs
 * nobody anything. */
#ifndef CLAIMD_WORKER_RUNNER_PROGRAM_H
#define CLAIMD_WORKER_RUNNER_PROGRAM_H

#include "worker/protocol.h"
#include "worker/runner/handler_file.h"

/* Takes the file over, for the life of this process: *ret_plugin borrows its texts. LIMIT, NOMEM:
 * it is left. */
enum status program_add(struct handler_file *h, struct claimd_plugin *ret_plugin,
                        struct err *err) MUST_USE;

bool program_serves(const struct claimd_kind *kind);
/* The file that a kind which a program serves is of. */
const char *program_file(const struct claimd_kind *kind);

/* Starts the program unless it is up. Blocks at most start_timeout, while the page names the file;
 * *err says why it can't be started. */
enum status program_prepare(const struct claimd_kind *kind, struct runner_page *page,
                            struct err *err) MUST_USE;

/* Until `fd` can be read, or a signal comes; sees to what programs say and do meanwhile. */
void programs_wait(int fd);

/* Is this child a program? */
bool program_is(pid_t pid);

#endif
