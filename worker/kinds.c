/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "daemon/daemon.h"
#include "worker/worker.h"

#include <jansson.h>

static const char *keep_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *kept = *at;
    memcpy(kept, text, size);
    *at += size;
    return kept;
}

static bool read_kind(const json_t *item, struct worker_kind *ret, char **at)
{
    const char *name = NULL;
    const char *plugin = NULL;
    const char *version = NULL;
    json_int_t timeout_ms = 0;
    int at_most_once = 0;
    struct worker_kind k = {0};
    int failed = json_unpack((json_t *)(uintptr_t)item, "{s:s, s:s, s:s, s:i, s:i, s:I, s:b}",
                             "name", &name, "plugin", &plugin, "version", &version, "max_attempts",
                             &k.max_attempts, "max_crashes", &k.max_crashes, "timeout_ms",
                             &timeout_ms, "at_most_once", &at_most_once);
    if (failed != 0 || job_kind_check(name, NULL) != STATUS_OK) {
        return false;
    }
    k.timeout_us = timeout_ms * US_PER_MS;
    k.at_most_once = at_most_once != 0;
    k.name = keep_text(at, name);
    k.plugin = keep_text(at, plugin);
    k.version = keep_text(at, version);
    *ret = k;
    return true;
}

static void read_kinds(struct worker *w, const json_t *hello)
{
    const json_t *list = json_object_get(hello, "kinds");
    char *at = w->kinds.texts;
    for (size_t i = 0; i < json_array_size(list) && w->kinds.count < WORKER_KINDS_MAX; i++) {
        struct worker_kind *k = &w->kinds.list[w->kinds.count];
        if (read_kind(json_array_get(list, i), k, &at)) {
            w->kinds.names[w->kinds.count++] = k->name;
        }
    }
    const json_t *refused = json_object_get(hello, "refused");
    for (size_t i = 0; i < json_array_size(refused); i++) {
        const json_t *item = json_array_get(refused, i);
        const char *file = json_string_value(json_object_get(item, "file"));
        const char *reason = json_string_value(json_object_get(item, "reason"));
        log_warn("plugin_refused", LOG_TEXT("file", file == NULL ? "?" : file),
                 LOG_TEXT("err", reason == NULL ? "?" : reason),
                 LOG_TEXT("action", "its kinds are not served here"));
    }
}

void kinds_take_hello(struct worker *w, const char *json, size_t len)
{
    if (w->kinds.texts != NULL) {
        return;
    }
    json_t *hello = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
    w->kinds.texts = malloc(len + 1); /* every text in it is shorter than its JSON */
    if (hello != NULL && w->kinds.texts != NULL) {
        read_kinds(w, hello);
    }
    json_decref(hello);
    if (w->kinds.count == 0) {
        log_warn("no_kinds", LOG_TEXT("plugins", w->config->worker.plugin_dir),
                 LOG_TEXT("action", "nothing will be claimed"));
    }
    if (w->config->worker.queue_count * (w->kinds.count + 1) > HINTS_SETS_MAX) {
        worker_fail(w, DAEMON_USAGE, "too many: worker.queues times the kinds of the plugins");
        return;
    }
    enrol_begin(w);
}
