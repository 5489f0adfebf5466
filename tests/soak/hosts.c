/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/hosts.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cluster/scrape.h"

#include <stdio.h>

#define TEXT_MAX (SERVER_PATH_MAX + 64)
#define METRICS_MAX ((size_t)1 << 20)
#define SCRAPE_US (1 * US_PER_S)

static const char listen_at[] = "CLAIMD_WORKER_HTTP_LISTEN=";

/* Of the hosts of the one world of this program. */
static struct {
    char listen[64];
    char plugins[TEXT_MAX];
} texts[WORLD_HOSTS_MAX];

void hosts_new_port(struct world *w, size_t host)
{
    if (w->hosts[host].role == HOST_WORKER) {
        (void)snprintf(texts[host].listen, sizeof texts[host].listen, "%s127.0.0.1:%d", listen_at,
                       port_free());
        w->hosts[host].env[0] = texts[host].listen;
    }
}

void hosts_equip(struct world *w)
{
    size_t worker = 0;
    for (size_t i = 0; i < w->host_count; i++) {
        struct host *h = &w->hosts[i];
        if (h->role != HOST_WORKER) {
            continue;
        }
        hosts_new_port(w, i);
        if (worker++ % 2 == 0) {
            (void)snprintf(texts[i].plugins, sizeof texts[i].plugins,
                           "CLAIMD_WORKER_PLUGIN_DIR=%s/more", w->dir);
            h->env[1] = texts[i].plugins;
        }
    }
}

int64_t hosts_refusals(const struct world *w, size_t host)
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
