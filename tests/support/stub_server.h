/* SPDX-License-Identifier: Apache-2.0
 *
 * A small server that speaks enough of the Redis protocol to be a lock node, for commands that the
 * installed servers lack: SET … IFEQ, DELIFEQ, DELEX. It is single-threaded, a child of the caller,
 * and ends with it; redis_server_kill() ends it. It knows only the scripts of the canary (lock.N9)
 * and of T_max (lock.N10).
 *
 * In addition, "STUB CALLS name" replies how often a command was called, and "STUB FAIL word text
 * count" makes the next `count` commands with that word fail with the error `text`. */
#ifndef CLAIMD_TESTS_SUPPORT_STUB_SERVER_H
#define CLAIMD_TESTS_SUPPORT_STUB_SERVER_H

#include "cluster/servers.h"

struct stub_options {
    const char *server;  /* "redis" or "valkey" */
    const char *version; /* "8.4.0": it supports IFEQ like this version of the server */
    bool has_ifeq;
    bool has_delifeq;
    bool has_delex;
};

enum status stub_server_start(const char *dir, const struct stub_options *stub,
                              struct redis_server *ret, struct err *err) MUST_USE;

#endif
