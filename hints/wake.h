/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends a pop that blocks on another connection. Private to hints/. */
#ifndef CLAIMD_HINTS_WAKE_H
#define CLAIMD_HINTS_WAKE_H

#include "hints/hints.h"

/* The members of the set that wakes. */
#define HINTS_WAKE_MEMBER "w" /* its pop lacks a set */
#define HINTS_NEWS_MEMBER "n" /* there is news for its owner: hints_tell_sleepers() */

typedef void hints_woken_cb(void *ctx, enum status st);

/* Puts the member into the set `key` of this node: a pop that blocks on it returns, and one that is
 * sent later returns at once. Whatever else stands there is taken away, and the call fails.
 * UNAVAILABLE where the node isn't up. Never calls back from inside the call. */
enum status hints_wake(struct hints *hints, size_t node, const char *key, hints_woken_cb *done,
                       void *ctx, struct err *err) MUST_USE;

#endif
