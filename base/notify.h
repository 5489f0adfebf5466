/* SPDX-License-Identifier: Apache-2.0
 *
 * sd_notify(3) without its library: tells systemd, or a test that owns a NOTIFY_SOCKET, when a
 * daemon is ready and when it ends. Does nothing if that variable isn't set; never blocks; failures
 * don't matter. */
#ifndef CLAIMD_BASE_NOTIFY_H
#define CLAIMD_BASE_NOTIFY_H

#include <stdint.h>

void notify_ready(void);
void notify_stopping(void);
/* A reload begins; notify_ready() ends it (systemd: Type=notify-reload). */
void notify_reloading(void);

/* How long the supervisor waits for notify_watchdog() (WATCHDOG_USEC); 0 = it doesn't. */
int64_t notify_watchdog_us(void);
void notify_watchdog(void);

#endif
