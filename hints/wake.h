/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends a pop that blocks on another connection. Private to hints/. */
#ifndef CLAIMD_HINTS_WAKE_H
#define CLAIMD_HINTS_WAKE_H

#include "hints/hints.h"

/* The members of the set that wakes a pop. */
#define HINTS_WAKE_MEMBER "w" /* the pop lacks a set */
#define HINTS_NEWS_MEMBER "n" /* there is news for the popper's owner: hints_tell_sleepers() */

typedef void hints_woken_cb(void *ctx, enum status st);

/* Puts the member into the set `key` on this node: a pop that blocks on it returns, and a pop that
 * is sent later returns at once. If the key has another type it is removed, and the call fails.
 * UNAVAILABLE if the node isn't up. Never calls back from inside this call. */
enum status hints_wake(struct hints *hints, size_t node, const char *key, hints_woken_cb *done,
                       void *ctx, struct err *err) MUST_USE;

#endif
