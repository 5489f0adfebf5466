/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the form of the templates in worker.commands. Their programs' files are checked where they
 * are run (runner/handler_file.c). */
#include "config/options.h"
#include "model/job.h"

#include <stdio.h>

static enum status check_command(const struct option_def *o, const char *name,
                                 const json_t *command, struct err *err)
{
    char kind[JOB_NAME_MAX + 2];
    size_t count = json_array_size(command);
    (void)snprintf(kind, sizeof kind, JOB_COMMAND_PREFIX "%s", name);
    if (job_kind_check(kind, NULL) != STATUS_OK) {
        return err_fail(err, STATUS_INVALID,
                        "%s: the name '%.80s' is not allowed; allowed: lower-case letters, digits "
                        "and _, at most %zu",
                        o->name, name, JOB_NAME_MAX - strlen(JOB_COMMAND_PREFIX));
    }
    if (count == 0 || count > CONFIG_COMMAND_WORDS_MAX) {
        return err_fail(err, STATUS_INVALID,
                        "%s.%s: must be a list of the program and its arguments, 1 to %d texts",
                        o->name, name, CONFIG_COMMAND_WORDS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *word = json_array_get(command, i);
        if (!json_is_string(word) || (i == 0 && json_string_value(word)[0] != '/')) {
            return err_fail(err, STATUS_INVALID, "%s.%s[%zu]: must be %s", o->name, name, i,
                            i == 0 ? "the program's absolute path" : "a text");
        }
    }
    return STATUS_OK;
}

enum status option_set_commands(const struct option_def *o, struct config *c, const json_t *value,
                                struct err *err)
{
    const char *name = NULL;
    json_t *command = NULL;
    if (!json_is_object(value) || json_object_size(value) > (size_t)o->max) {
        return option_refuse(o, json_is_object(value) ? "so many" : "this", err);
    }
    json_object_foreach((json_t *)(uintptr_t)value, name, command)
    {
        enum status st = check_command(o, name, command, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    autofree char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL) {
        return err_fail(err, STATUS_NOMEM, "%s", o->name);
    }
    if (strlen(text) >= o->size) {
        return err_fail(err, STATUS_INVALID, "%s: %zu bytes of JSON; allowed: at most %zu", o->name,
                        strlen(text), o->size - 1);
    }
    (void)snprintf(option_field(o, c), o->size, "%s", text);
    return STATUS_OK;
}
