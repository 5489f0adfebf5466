/* SPDX-License-Identifier: Apache-2.0
 *
 * A bad network between several hosts and several servers, all of one machine: for each server a
 * unix socket of ours, whose connections are carried to the server's by one thread. Who connects is
 * known by its process, so that each link (host, server) has a rule of its own. It knows no
 * protocol; tests/support/fault_proxy.h does. */
#ifndef CLAIMD_CLUSTER_LINK_PROXY_H
#define CLAIMD_CLUSTER_LINK_PROXY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LINK_HOSTS_MAX 16
#define LINK_SERVERS_MAX 16
#define LINK_ALL SIZE_MAX

/* The zero value: a good network. */
struct link_rule {
    int64_t to_server_us; /* delays */
    int64_t to_client_us;
    int64_t bytes_per_s; /* of each connection and direction; 0 = no limit */
    /* Nothing passes in this direction, the end of a connection neither. It comes late, when the
     * hole is mended, as TCP's retransmissions would. */
    bool is_hole_to_server;
    bool is_hole_to_client;
    bool is_refused; /* new connections end at once */
    /* The next bytes in this direction: half of them, then the end of the connection. Once. */
    bool cuts_to_server;
    bool cuts_to_client;
};

struct link_proxy;

enum status link_proxy_start(struct link_proxy **ret, struct err *err) MUST_USE;
void link_proxy_stop(struct link_proxy *p); /* breaks all connections; accepts NULL */

/* Listens at `path`; numbers servers from 0. LIMIT, UNAVAILABLE. */
enum status link_proxy_add(struct link_proxy *p, const char *path, const char *server_path,
                           struct err *err) MUST_USE;
/* New connections go there from now on. */
void link_proxy_move(struct link_proxy *p, size_t server, const char *server_path);

/* Whether somebody listens there: a server that is dead refuses, and does not take a connection to
 * end it. UNAVAILABLE. */
enum status link_proxy_listen(struct link_proxy *p, size_t server, bool is_on,
                              struct err *err) MUST_USE;

/* This process is that host, from now on. Processes of no host have the good network. */
void link_proxy_is_host(struct link_proxy *p, size_t host, pid_t pid);

/* `host`, `server`: LINK_ALL = each. NULL = good. */
void link_proxy_rule(struct link_proxy *p, size_t host, size_t server,
                     const struct link_rule *rule);
void link_proxy_break(struct link_proxy *p, size_t host, size_t server);  /* its connections */
size_t link_proxy_open(struct link_proxy *p, size_t host, size_t server); /* how many there are */

#endif
