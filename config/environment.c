/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the CLAIMD_… variables, and detects mistyped ones. */
#include "base/nearest.h"
#include "config/options.h"

#include <assert.h>

#define NAME_SIZE 80
#define PREFIX "CLAIMD_"
#define TYPING_ERRORS_MAX 2

static void env_name(const struct option_def *o, char ret_name[NAME_SIZE])
{
    bool fits = option_env_name(o, ret_name, NAME_SIZE);
    assert(fits);
}

static bool is_in_section(const char *name, const struct option_def *o, const char *env)
{
    size_t section = strcspn(o->name, ".");
    return o->name[section] == '.' && strncmp(env, name, strlen(PREFIX) + section + 1) == 0;
}

/* A variable with the prefix of one of our sections that is none of its keys is a mistake, and so
 * is one that differs from a key by at most TYPING_ERRORS_MAX letters; all other variables are
 * ignored. */
static enum status check_name(const char *name, struct err *err)
{
    bool is_ours = false;
    char nearest[NAME_SIZE] = "";
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < config_option_count; i++) {
        char env[NAME_SIZE];
        env_name(&config_options[i], env);
        size_t d = nearest_distance(name, env);
        is_ours = is_ours || is_in_section(name, &config_options[i], env);
        if (d < least) {
            least = d;
            memcpy(nearest, env, sizeof nearest);
        }
    }
    if (least > 0 && (is_ours || least <= TYPING_ERRORS_MAX)) {
        return err_fail(err, STATUS_INVALID, "environment: %s: no such key; did you mean %s?", name,
                        nearest);
    }
    return STATUS_OK;
}

static enum status check_names(struct err *err)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        char name[NAME_SIZE];
        size_t len = strcspn(*entry, "=");
        if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0 || len >= sizeof name) {
            continue;
        }
        memcpy(name, *entry, len);
        name[len] = '\0';
        enum status st = check_name(name, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status config_environment(struct config *c, struct err *err)
{
    for (size_t i = 0; i < config_option_count; i++) {
        char name[NAME_SIZE];
        env_name(&config_options[i], name);
        const char *text = getenv(name);
        if (text == NULL) {
            continue;
        }
        option_came_from(&config_options[i], c, CONFIG_ENVIRONMENT);
        enum status st = option_parse(&config_options[i], c, text, err);
        if (st != STATUS_OK) {
            err_prefix(err, "environment %s", name);
            return st;
        }
    }
    return check_names(err);
}
