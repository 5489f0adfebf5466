/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/timeline.h"

#include <stdio.h>

#define LINES_MAX 40

struct reader {
    const char *name;
    int64_t job;
    int64_t n;
    int lines;
};

static void print_line(void *ctx, const json_t *line)
{
    struct reader *r = ctx;
    int64_t job = json_integer_value(json_object_get(line, "job"));
    int64_t n = json_integer_value(json_object_get(line, "n"));
    if ((job != r->job || job == 0) && (n != r->n || n == 0)) {
        return;
    }
    if (++r->lines <= LINES_MAX) {
        char *text = json_dumps(line, JSON_COMPACT);
        (void)printf("    %s: %s\n", r->name, text != NULL ? text : "");
        free(text);
    }
}

void timeline_print(const struct folder *f, int64_t job, int64_t n)
{
    static const char *const files[] = {"acked.jsonl", "events.jsonl", "ledger/effects.jsonl",
                                        "final.jsonl"};
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        struct reader r = {.name = files[i], .job = job, .n = n};
        struct err why = {0};
        if (folder_read(f, files[i], print_line, &r, &why) != STATUS_OK) {
            (void)printf("    %s\n", why.msg);
        }
    }
}
