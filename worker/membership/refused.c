/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/membership/refused.h"

#include "base/parse.h"
#include "worker/membership/hello.h"

#include <stdio.h>

static void add(struct refused *r, const char *file, const char *reason)
{
    char text[RUNNER_FILE_SIZE + ERR_TEXT_MAX];
    if (r->count < WORKER_REFUSED_MAX) {
        (void)snprintf(text, sizeof text, "%s: %s", file == NULL ? "?" : file,
                       reason == NULL ? "?" : reason);
        (void)utf8_clean(text, strlen(text), r->texts[r->count++], sizeof r->texts[0]);
    }
}

void refused_fill(struct refused *ret, const json_t *told, const struct slot_without *without)
{
    ret->count = 0;
    for (size_t i = 0; i < hello_refused_count(told); i++) {
        const json_t *item = json_array_get(told, i);
        add(ret, json_string_value(json_object_get(item, "file")),
            json_string_value(json_object_get(item, "reason")));
    }
    for (size_t i = 0; i < without->count; i++) {
        add(ret, without->files[i], "its runner ended while loading it");
    }
}

size_t refused_texts(const struct refused *r, const char *ret[WORKER_REFUSED_MAX])
{
    for (size_t i = 0; i < r->count; i++) {
        ret[i] = r->texts[i];
    }
    return r->count;
}
