/* SPDX-License-Identifier: Apache-2.0
 *
 * sd_notify(3) without its library: notifies systemd, or a test that set NOTIFY_SOCKET, when a
 * daemon is ready and when it stops. Does nothing if that variable isn't set, never blocks, and
 * ignores failures. */
#ifndef CLAIMD_BASE_NOTIFY_H
#define CLAIMD_BASE_NOTIFY_H

#include <stdint.h>

void notify_ready(void);
void notify_stopping(void);
/* Announces that a reload begins; notify_ready() ends it (systemd: Type=notify-reload). */
void notify_reloading(void);

/* Returns the interval within which the supervisor expects notify_watchdog() (WATCHDOG_USEC); 0 =
 * it expects none. */
int64_t notify_watchdog_us(void);
void notify_watchdog(void);

#endif
