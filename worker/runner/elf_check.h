/* SPDX-License-Identifier: Apache-2.0
 *
 * Is a file a whole shared object of this machine? dlopen() maps what the headers promise, so a
 * truncated file would end the process with SIGBUS instead of an error (fault.G6). */
#ifndef CLAIMD_WORKER_RUNNER_ELF_CHECK_H
#define CLAIMD_WORKER_RUNNER_ELF_CHECK_H

#include "base/err.h"

#include <stdint.h>

/* INVALID says what was found and what was wanted; UNAVAILABLE when it can't be read. */
enum status elf_check(int fd, int64_t size_bytes, struct err *err) MUST_USE;

#endif
