/* SPDX-License-Identifier: Apache-2.0
 *
 * A TCP socket that listens. */
#ifndef CLAIMD_DAEMON_LISTENER_H
#define CLAIMD_DAEMON_LISTENER_H

#include "config/config.h"

#define LISTENER_TEXT_MAX 80

/* CLOEXEC, non-blocking; `ret_text` has the address and the real port. Looks the host up, which may
 * block. UNAVAILABLE: no such host here, or the port is taken. */
enum status listener_open(const struct config_listen *where, int *ret_fd,
                          char ret_text[LISTENER_TEXT_MAX], struct err *err) MUST_USE;

#endif
