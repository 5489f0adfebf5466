/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/programs.h"

#include "chaos/handler_file.h"

#include <stdio.h>

#define MANY HANDLER_FILE_MANY

static const struct program_kind {
    const char *name;
    int max_attempts; /* 0 = the default */
    int max_crashes;
    bool at_most_once;
    const char *timeout;
} kinds[] = {{"short", MANY, MANY, false, NULL},   {"long", MANY, MANY, false, NULL},
             {"big", MANY, MANY, false, NULL},     {"retry", MANY, MANY, false, NULL},
             {"crash", MANY, MANY, false, NULL},   {"fail", MANY, MANY, false, NULL},
             {"poison", 3, 2, false, NULL}, /* in "once" mode its death is no crash */
             {"tired", 3, MANY, false, NULL},      {"once", 0, MANY, true, NULL},
             {"hang", MANY, MANY, false, "1500ms"}};

static json_t *kinds_json(char prefix)
{
    json_t *all = json_object();
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        const struct program_kind *k = &kinds[i];
        char name[32];
        (void)snprintf(name, sizeof name, "%c_%s", prefix, k->name);
        json_t *kind = json_pack("{s:i}", "max_crashes", k->max_crashes);
        if (k->at_most_once) {
            (void)json_object_set_new(kind, "at_most_once", json_true());
        } else {
            (void)json_object_set_new(kind, "max_attempts", json_integer(k->max_attempts));
            (void)json_object_set_new(kind, "backoff", json_string("fixed:100ms"));
        }
        if (k->timeout != NULL) {
            (void)json_object_set_new(kind, "timeout", json_string(k->timeout));
        }
        (void)json_object_set_new(all, name, kind);
    }
    return all;
}

enum status programs_write(const char *dir, struct err *err)
{
    enum status st = handler_file_write(dir, "serve", kinds_json('p'), err);
    if (st != STATUS_OK) {
        return st;
    }
    return handler_file_write(dir, "once", kinds_json('o'), err);
}
