/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults of the network between hosts and servers, link by link. */
#include "base/clock.h"
#include "chaos/nemesis.h"

#include <stdio.h>

/* A link: one host and one server; one host and all; or all and one server. */
struct link {
    size_t host;
    size_t server;
};

static struct link choose(struct world *w, struct nemesis *n, const char *detail)
{
    struct link l = {.host = (size_t)rand_below(&n->rand, (int64_t)w->host_count),
                     .server = (size_t)rand_below(&n->rand, WORLD_REDIS + 1)};
    l.server = l.server == WORLD_REDIS ? WORLD_REDIS + w->lead : l.server;
    int64_t shape = rand_below(&n->rand, 4);
    char server[16];
    (void)snprintf(server, sizeof server, l.server < WORLD_REDIS ? "r%zu" : "pg%zu",
                   l.server < WORLD_REDIS ? l.server : l.server - WORLD_REDIS);
    if (shape == 0) {
        l.server = LINK_ALL;
        nemesis_target(n, detail, "%s-all", w->hosts[l.host].name);
    } else if (shape == 1) {
        l.host = LINK_ALL;
        nemesis_target(n, detail, "all-%s", server);
    } else {
        nemesis_target(n, detail, "%s-%s", w->hosts[l.host].name, server);
    }
    n->index = l.host == LINK_ALL ? LINK_HOSTS_MAX : l.host;
    n->index =
        n->index * (LINK_SERVERS_MAX + 1) + (l.server == LINK_ALL ? LINK_SERVERS_MAX : l.server);
    return l;
}

static void mend(struct world *w, struct nemesis *n)
{
    size_t host = n->index / (LINK_SERVERS_MAX + 1);
    size_t server = n->index % (LINK_SERVERS_MAX + 1);
    link_proxy_rule(w->net, host == LINK_HOSTS_MAX ? LINK_ALL : host,
                    server == LINK_SERVERS_MAX ? LINK_ALL : server, NULL);
}

static bool hole(struct world *w, struct nemesis *n)
{
    static const char *const names[] = {"both ways", "to the server", "to the client"};
    int64_t way = rand_below(&n->rand, 3);
    struct link l = choose(w, n, names[way]);
    link_proxy_rule(
        w->net, l.host, l.server,
        &(struct link_rule){.is_hole_to_server = way != 2, .is_hole_to_client = way != 1});
    return true;
}

static bool slow(struct world *w, struct nemesis *n)
{
    char detail[64];
    struct link_rule r = {.to_server_us = US_PER_MS * nemesis_between(n, 1, 150),
                          .to_client_us = US_PER_MS * nemesis_between(n, 1, 150)};
    r.bytes_per_s = rand_below(&n->rand, 2) == 0 ? nemesis_between(n, 2000, 50000) : 0;
    (void)snprintf(detail, sizeof detail, "+%lld ms, +%lld ms, %lld B/s",
                   (long long)(r.to_server_us / US_PER_MS), (long long)(r.to_client_us / US_PER_MS),
                   (long long)r.bytes_per_s);
    struct link l = choose(w, n, detail);
    link_proxy_rule(w->net, l.host, l.server, &r);
    return true;
}

static bool refuse(struct world *w, struct nemesis *n)
{
    struct link l = choose(w, n, "");
    link_proxy_rule(w->net, l.host, l.server, &(struct link_rule){.is_refused = true});
    link_proxy_break(w->net, l.host, l.server);
    return true;
}

static bool cut(struct world *w, struct nemesis *n)
{
    bool is_reply = rand_below(&n->rand, 3) != 0;
    struct link l = choose(w, n, is_reply ? "in a reply" : "in a request");
    link_proxy_rule(w->net, l.host, l.server,
                    &(struct link_rule){.cuts_to_server = !is_reply, .cuts_to_client = is_reply});
    return true;
}

static bool sever(struct world *w, struct nemesis *n)
{
    struct link l = choose(w, n, "");
    link_proxy_break(w->net, l.host, l.server);
    return true;
}

const struct nemesis_def nemesis_net_defs[] = {
    {"net_hole", "a link passes nothing, in one direction or both; what was sent arrives late",
     COUNT_OTHER, 0, 15000, 1000, 20000, hole, mend},
    {"net_slow", "a link is slow, and sometimes has little bandwidth", COUNT_OTHER, 0, 30000, 2000,
     20000, slow, mend},
    {"net_refuse", "a link's connections are broken, new ones refused", COUNT_OTHER, 0, 30000, 500,
     10000, refuse, mend},
    {"net_cut", "a message is cut in the middle", COUNT_OTHER, 0, 10000, 500, 500, cut, mend},
    {"net_break", "the connections of a link are broken", COUNT_OTHER, 0, 20000, 0, 0, sever, NULL},
};
const size_t nemesis_net_count = ARRAY_COUNT(nemesis_net_defs);
