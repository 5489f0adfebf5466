/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulates a bad network between several hosts and several servers, all on one machine. It opens a
 * unix socket of its own for each server, and one thread forwards the connections to the server's
 * socket. A client is identified by its process, so that each link (host, server) can have a rule
 * of its own. The proxy knows no protocol; tests/support/fault_proxy.h does. */
#ifndef CLAIMD_CLUSTER_LINK_PROXY_H
#define CLAIMD_CLUSTER_LINK_PROXY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LINK_HOSTS_MAX 16
#define LINK_SERVERS_MAX 16
#define LINK_ALL SIZE_MAX

/* The zero value is a good network. */
struct link_rule {
    int64_t to_server_us; /* delays */
    int64_t to_client_us;
    int64_t bytes_per_s; /* limit of each connection and direction; 0 = no limit */
    /* Nothing passes in this direction, not even the end of a connection. It is delivered late,
     * when the hole is mended, as TCP's retransmissions would be. */
    bool is_hole_to_server;
    bool is_hole_to_client;
    bool is_refused; /* new connections are closed at once */
    /* Takes effect once: forwards half of the next bytes in this direction, then ends the
     * connection. */
    bool cuts_to_server;
    bool cuts_to_client;
};

struct link_proxy;

enum status link_proxy_start(struct link_proxy **ret, struct err *err) MUST_USE;
void link_proxy_stop(struct link_proxy *p); /* breaks all connections; accepts NULL */

/* Listens at `path`. Servers are numbered from 0. Returns LIMIT or UNAVAILABLE on failure. */
enum status link_proxy_add(struct link_proxy *p, const char *path, const char *server_path,
                           struct err *err) MUST_USE;
/* Sends new connections to `server_path` from now on. */
void link_proxy_move(struct link_proxy *p, size_t server, const char *server_path);

/* Sets whether the proxy listens for that server: a dead server refuses connections, instead of
 * accepting them and closing them. Returns UNAVAILABLE on failure. */
enum status link_proxy_listen(struct link_proxy *p, size_t server, bool is_on,
                              struct err *err) MUST_USE;

/* Assigns this process to that host, from now on. Processes without a host have the good
 * network. */
void link_proxy_is_host(struct link_proxy *p, size_t host, pid_t pid);

/* Sets the rule of a link. `host`, `server`: LINK_ALL = each. `rule`: NULL = the good network. */
void link_proxy_rule(struct link_proxy *p, size_t host, size_t server,
                     const struct link_rule *rule);
/* Ends the connections of the link. */
void link_proxy_break(struct link_proxy *p, size_t host, size_t server);
/* Returns the number of its open connections. */
size_t link_proxy_open(struct link_proxy *p, size_t host, size_t server);

#endif
