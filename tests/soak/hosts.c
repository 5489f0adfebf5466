/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/hosts.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cluster/scrape.h"

#include <stdio.h>

#define TEXT_MAX (SERVER_PATH_MAX + 64)
#define METRICS_MAX ((size_t)1 << 20)
#define SCRAPE_US (1 * US_PER_S)

#define APART 2 /* workers that serve only queues_apart, if there are more workers */

static const char listen_at[] = "CLAIMD_WORKER_HTTP_LISTEN=";
/* Queues with workers of their own, which have work of priority 0 at all times, whatever the
 * backlog of other queues. */
static const char queues_apart[] = "CLAIMD_WORKER_QUEUES=soak_aged,soak_open";
static const char aging[] = "CLAIMD_SCHEDULER_PRIORITY_AGING_MS=500";

/* Settings of each host. Static, since this program has one world. */
static struct {
    char listen[64];
    char plugins[TEXT_MAX];
} texts[WORLD_HOSTS_MAX];

static int64_t refusals_before; /* of workers that were killed since */

static void new_port(struct world *w, size_t host)
{
    if (w->hosts[host].role == HOST_WORKER) {
        (void)snprintf(texts[host].listen, sizeof texts[host].listen, "%s127.0.0.1:%d", listen_at,
                       port_free());
        w->hosts[host].env[0] = texts[host].listen;
    }
}

static size_t worker_count(const struct world *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->host_count; i++) {
        count += w->hosts[i].role == HOST_WORKER;
    }
    return count;
}

static void equip_worker(struct world *w, size_t host, size_t worker)
{
    struct host *h = &w->hosts[host];
    new_port(w, host);
    if (worker < APART && worker_count(w) > APART) {
        h->env[1] = queues_apart;
    } else if (worker % 2 == 0) {
        (void)snprintf(texts[host].plugins, sizeof texts[host].plugins,
                       "CLAIMD_WORKER_PLUGIN_DIR=%s/more", w->dir);
        h->env[1] = texts[host].plugins;
    }
}

void hosts_equip(struct world *w)
{
    size_t worker = 0;
    for (size_t i = 0; i < w->host_count; i++) {
        if (w->hosts[i].role == HOST_WORKER) {
            equip_worker(w, i, worker++);
        } else {
            w->hosts[i].env[0] = aging;
        }
    }
}

static int64_t refusals_of(const struct world *w, size_t host)
{
    autobuf struct buf text = BUF_INIT(METRICS_MAX);
    if (w->hosts[host].role != HOST_WORKER || w->hosts[host].pid <= 0 ||
        scrape_get(texts[host].listen + strlen(listen_at), "/metrics", SCRAPE_US, &text, NULL) !=
            STATUS_OK) {
        return 0;
    }
    double refused = scrape_sum(buf_at(&text), "claimd_stale_writes_refused_total", NULL);
    return refused > 0 ? (int64_t)refused : 0;
}

void hosts_leave(struct world *w, const struct host *h)
{
    size_t host = (size_t)(h - w->hosts);
    refusals_before += refusals_of(w, host);
    new_port(w, host);
}

int64_t hosts_refusals(const struct world *w)
{
    int64_t sum = refusals_before;
    for (size_t i = 0; i < w->host_count; i++) {
        sum += refusals_of(w, i);
    }
    return sum;
}
