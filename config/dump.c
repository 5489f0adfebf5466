/* SPDX-License-Identifier: Apache-2.0 */
#include "config/dump.h"

#include "base/clock.h"

#include <stdio.h>

#define NAME_SIZE 80

/* ---- values ---- */

static json_t *text_value(const char *text, bool *ret_is_masked)
{
    char shown[CONFIG_PATH_MAX + 8];
    bool is_masked = option_mask(text, shown, sizeof shown);
    *ret_is_masked = *ret_is_masked || is_masked;
    return json_string(shown);
}

static json_t *list_value(const struct option_def *o, const struct config *c, bool *ret_is_masked)
{
    json_t *list = json_array();
    const char *items = option_value(o, c);
    for (size_t i = 0; list != NULL && i < option_list_count(o, c); i++) {
        if (json_array_append_new(list, text_value(items + i * o->size, ret_is_masked)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* A relative path from the environment starts at the current directory. */
static json_t *path_value(const char *path)
{
    char full[2 * CONFIG_PATH_MAX];
    char folder[CONFIG_PATH_MAX] = "";
    bool is_relative = path[0] != '\0' && path[0] != '/';
    if (is_relative && getcwd(folder, sizeof folder) == NULL) {
        return NULL;
    }
    (void)snprintf(full, sizeof full, "%s%s%s", folder, is_relative ? "/" : "", path);
    return json_string(full);
}

static json_t *choice_value(const struct option_def *o, const struct config *c)
{
    int index = 0;
    bool flag = false;
    if (o->size == sizeof flag) {
        memcpy(&flag, option_value(o, c), sizeof flag);
        index = flag ? 1 : 0;
    } else {
        memcpy(&index, option_value(o, c), sizeof index);
    }
    return json_string(o->choices[index]);
}

json_t *config_value(const struct option_def *o, const struct config *c, bool *ret_is_masked)
{
    const void *value = option_value(o, c);
    switch (o->type) {
    case OPTION_INT:
        return json_integer(*(const int *)value);
    case OPTION_TIME:
        return json_integer(*(const int64_t *)value / US_PER_MS);
    case OPTION_REAL:
        return json_real(*(const double *)value);
    case OPTION_CHOICE:
        return choice_value(o, c);
    case OPTION_LIST:
        return list_value(o, c, ret_is_masked);
    case OPTION_PATH:
    case OPTION_SECRET_FILE:
        return path_value(value);
    case OPTION_COMMANDS:
        return json_loads(value, 0, NULL);
    case OPTION_TEXT:
        break;
    }
    return text_value(value, ret_is_masked);
}

/* ---- documents ---- */

/* Splits "lock.ttl_ms" into "lock" and "ttl_ms"; the section is "" if there is none. */
static const char *split(const char *name, char ret_section[NAME_SIZE])
{
    size_t len = strcspn(name, ".");
    bool has_section = name[len] == '.';
    (void)snprintf(ret_section, NAME_SIZE, "%.*s", has_section ? (int)len : 0, name);
    return has_section ? name + len + 1 : name;
}

/* Returns the member `name` of an object as a borrowed reference, after setting it to `fresh` if it
 * is missing; NULL if out of memory. Takes over `fresh`. */
static json_t *member(json_t *object, const char *name, json_t *fresh)
{
    json_t *found = json_object_get(object, name);
    if (found != NULL) {
        json_decref(fresh);
        return found;
    }
    return json_object_set_new(object, name, fresh) == 0 ? fresh : NULL;
}

static enum status print(const json_t *root, struct buf *out, struct err *err)
{
    autofree char *text = json_dumps(root, JSON_INDENT(4) | JSON_REAL_PRECISION(6));
    if (text == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory to print the configuration");
    }
    enum status st = buf_append_text(out, text, err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_text(out, "\n", err);
}

enum status config_dump(const struct config *c, struct buf *out, bool *ret_is_masked,
                        struct err *err)
{
    json_auto_t *root = json_object();
    for (size_t i = 0; i < config_option_count; i++) {
        char name[NAME_SIZE];
        const char *key = split(config_options[i].name, name);
        json_t *section = name[0] == '\0' ? root : member(root, name, json_object());
        json_t *value = config_value(&config_options[i], c, ret_is_masked);
        if (json_object_set_new(section, key, value) != 0) {
            return err_fail(err, STATUS_NOMEM, "no memory to print the configuration");
        }
    }
    return print(root, out, err);
}

/* ---- schema ---- */

static json_t *type_schema(const struct option_def *o)
{
    json_t *choices = NULL;
    switch (o->type) {
    case OPTION_INT:
    case OPTION_TIME:
        return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)o->min,
                         "maximum", (json_int_t)o->max);
    case OPTION_REAL:
        return json_pack("{s:s, s:f, s:f}", "type", "number", "minimum", (double)o->min / 1000,
                         "maximum", (double)o->max / 1000);
    case OPTION_CHOICE:
        choices = json_array();
        for (size_t i = 0; o->choices[i] != NULL; i++) {
            (void)json_array_append_new(choices, json_string(o->choices[i]));
        }
        return json_pack("{s:s, s:o}", "type", "string", "enum", choices);
    case OPTION_LIST:
        return json_pack("{s:s, s:I, s:I, s:b, s:{s:s, s:i, s:I}}", "type", "array", "minItems",
                         (json_int_t)o->min, "maxItems", (json_int_t)o->max, "uniqueItems", 1,
                         "items", "type", "string", "minLength", 1, "maxLength",
                         (json_int_t)o->size - 1);
    case OPTION_COMMANDS:
        return json_pack("{s:s, s:I, s:{s:s}, s:{s:s, s:i, s:i, s:{s:s}}}", "type", "object",
                         "maxProperties", (json_int_t)o->max, "propertyNames", "pattern",
                         "^[a-z][a-z0-9_]{0,55}$", "additionalProperties", "type", "array",
                         "minItems", 1, "maxItems", CONFIG_COMMAND_WORDS_MAX, "items", "type",
                         "string");
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_SECRET_FILE:
        break;
    }
    return json_pack("{s:s, s:I, s:I}", "type", "string", "minLength", (json_int_t)o->min,
                     "maxLength", (json_int_t)o->size - 1);
}

static json_t *option_schema(const struct option_def *o, struct config *defaults, struct err *err)
{
    bool is_masked = false;
    if (option_parse(o, defaults, o->default_text, err) != STATUS_OK) {
        return NULL;
    }
    json_t *schema = type_schema(o);
    (void)json_object_set_new(schema, "default", config_value(o, defaults, &is_masked));
    (void)json_object_set_new(schema, "description", json_string(o->help));
    if (o->is_expert) {
        (void)json_object_set_new(schema, "x-expert", json_true());
    }
    return schema;
}

static json_t *object_schema(void)
{
    return json_pack("{s:s, s:b, s:{}}", "type", "object", "additionalProperties", 0, "properties");
}

/* Adds the schemas of the keys that are, or are not, for experts. A section's object is created
 * with its first key. */
static enum status put_schemas(json_t *root, bool is_expert, struct config *defaults,
                               struct err *err)
{
    for (size_t i = 0; i < config_option_count; i++) {
        char name[NAME_SIZE];
        const char *key = split(config_options[i].name, name);
        json_t *properties = json_object_get(root, "properties");
        if (config_options[i].is_expert != is_expert) {
            continue;
        }
        if (name[0] != '\0') {
            json_t *section = member(properties, name, object_schema());
            properties = json_object_get(section, "properties");
        }
        json_t *schema = option_schema(&config_options[i], defaults, err);
        if (json_object_set_new(properties, key, schema) != 0) {
            return err_fail(err, STATUS_NOMEM, "no memory to print the schema");
        }
    }
    return STATUS_OK;
}

enum status config_schema(struct buf *out, struct err *err)
{
    autofree struct config *defaults = calloc(1, sizeof *defaults);
    json_auto_t *root =
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:{}}", "$schema",
                  "https://json-schema.org/draft/2020-12/schema", "title", "claimd", "description",
                  "Configuration of claimd. How keys must fit each other: `claimctl config check`. "
                  "Keys with x-expert come last: their defaults suit nearly everybody.",
                  "type", "object", "additionalProperties", 0, "properties");
    if (defaults == NULL || root == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory to print the schema");
    }
    enum status st = put_schemas(root, false, defaults, err);
    if (st == STATUS_OK) {
        st = put_schemas(root, true, defaults, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return print(root, out, err);
}
