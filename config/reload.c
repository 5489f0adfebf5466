/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares a new configuration with the present one: which values are adopted, and which need a
 * restart. */
#include "config/options.h"

#include <stdio.h>

static bool is_same_text(const struct option_def *o, const struct config *a, const struct config *b)
{
    const char *x = option_value(o, a);
    const char *y = option_value(o, b);
    return strcmp(x, y) == 0;
}

static bool is_same_list(const struct option_def *o, const struct config *a, const struct config *b)
{
    const char *x = option_value(o, a);
    const char *y = option_value(o, b);
    size_t count = option_list_count(o, a);
    bool is_same = count == option_list_count(o, b);
    for (size_t i = 0; is_same && i < count; i++) {
        is_same = strcmp(x + i * o->size, y + i * o->size) == 0;
    }
    return is_same;
}

static bool is_same(const struct option_def *o, const struct config *a, const struct config *b)
{
    switch (o->type) {
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_COMMANDS:
        return is_same_text(o, a, b);
    case OPTION_SECRET_FILE:
        return is_same_text(o, a, b) &&
               strcmp((const char *)a + o->aux, (const char *)b + o->aux) == 0;
    case OPTION_LIST:
        return is_same_list(o, a, b);
    case OPTION_INT:
    case OPTION_TIME:
    case OPTION_REAL:
    case OPTION_CHOICE:
        break;
    }
    return memcmp(option_value(o, a), option_value(o, b), o->size) == 0;
}

static void keep(const struct option_def *o, struct config *c, const struct config *old)
{
    size_t items = o->type == OPTION_LIST ? (size_t)o->max : 1;
    memcpy(option_field(o, c), option_value(o, old), o->size * items);
    if (o->type == OPTION_LIST || o->type == OPTION_SECRET_FILE) {
        size_t size = o->type == OPTION_LIST ? sizeof(size_t) : CONFIG_TEXT_MAX;
        memcpy((char *)c + o->aux, (const char *)old + o->aux, size);
    }
    c->origins[o - config_options] = old->origins[o - config_options];
}

static void add_name(char *names, size_t size, const char *name)
{
    size_t len = strlen(names);
    (void)snprintf(names + len, size - len, "%s%s", len > 0 ? ", " : "", name);
}

enum status config_reload(const char *path, const struct config *old, struct config *ret,
                          struct config_changes *ret_changes, struct err *err)
{
    struct config c;
    struct config_changes changes = {.taken = ""};
    enum status st = config_read(path, &c, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (c.time_scale < old->time_scale || c.time_scale > old->time_scale) {
        add_name(changes.needs_restart, sizeof changes.needs_restart, "time_scale");
        c.time_scale = old->time_scale; /* otherwise every time would differ */
    }
    config_finish(&c);
    for (size_t i = 0; i < config_option_count; i++) {
        const struct option_def *o = &config_options[i];
        if (is_same(o, &c, old)) {
            continue;
        }
        if (o->is_reloadable) {
            add_name(changes.taken, sizeof changes.taken, o->name);
        } else {
            add_name(changes.needs_restart, sizeof changes.needs_restart, o->name);
            keep(o, &c, old);
        }
    }
    *ret = c;
    *ret_changes = changes;
    return STATUS_OK;
}
