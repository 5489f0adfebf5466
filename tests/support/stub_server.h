/* SPDX-License-Identifier: Apache-2.0
 *
 * A small server that speaks enough of the Redis protocol to be a lock node, for commands that the
 * servers at hand don't have: SET … IFEQ, DELIFEQ, DELEX. Single-threaded, a child of the caller,
 * gone with it; redis_server_kill() ends it. It knows no script but that of the canary (lock.N9).
 *
 * Besides: "STUB CALLS name" replies how often a command came, "STUB FAIL word text count" makes
 * the next `count` with that word fail with the error `text`. */
#ifndef CLAIMD_TESTS_SUPPORT_STUB_SERVER_H
#define CLAIMD_TESTS_SUPPORT_STUB_SERVER_H

#include "cluster/servers.h"

struct stub_options {
    const char *server;  /* "redis" or "valkey" */
    const char *version; /* "8.4.0": from its own first version with IFEQ on, it takes that */
    bool has_ifeq;
    bool has_delifeq;
    bool has_delex;
};

enum status stub_server_start(const char *dir, const struct stub_options *stub,
                              struct redis_server *ret, struct err *err) MUST_USE;

#endif
