/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that are programs (docs/handler-protocol.md, docs/decisions/0034): one process for each
 * file of worker.handlers, started with the first job of its kinds and then used for job after job.
 * If a program dies or breaks the protocol while it has a job, this runner ends too, and the page
 * says why: the attempt is charged, as for a crash of a plugin. Between jobs no attempt is
 * charged. */
#ifndef CLAIMD_RUNNER_PROGRAM_H
#define CLAIMD_RUNNER_PROGRAM_H

#include "protocol/protocol.h"
#include "runner/handler_file.h"

/* Takes ownership of the file for the life of this process; *ret_plugin borrows its texts. LIMIT,
 * NOMEM: the caller keeps the file. */
enum status program_add(struct handler_file *h, struct claimd_plugin *ret_plugin,
                        struct err *err) MUST_USE;

bool program_serves(const struct claimd_kind *kind);
/* Returns the name of the handler file of a kind that a program serves. */
const char *program_file(const struct claimd_kind *kind);

/* Starts the program unless it is running. Blocks for start_timeout at most; meanwhile the page
 * names the file. *err says why it can't be started. */
enum status program_prepare(const struct claimd_kind *kind, struct runner_page *page,
                            struct err *err) MUST_USE;

/* Blocks until `fd` can be read, and meanwhile handles output and ends of programs. Without running
 * programs it returns at once. */
void programs_wait(int fd);

/* True if this child process is a program. */
bool program_is(pid_t pid);

#endif
