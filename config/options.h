/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of all options, from which parsing, checks, the names in the environment and
 * docs/config.md are derived. A new key takes one line in options.c and one field in struct config.
 * Private to config/ and its tests. */
#ifndef CLAIMD_CONFIG_OPTIONS_H
#define CLAIMD_CONFIG_OPTIONS_H

#include "config/config.h"

#include <jansson.h>

enum option_type {
    OPTION_INT,
    OPTION_TIME,        /* milliseconds in files, int64 microseconds in the struct */
    OPTION_REAL,        /* a double; min and max are thousandths */
    OPTION_TEXT,        /* `min` is the minimum length */
    OPTION_PATH,        /* relative to the file's directory if set in a file */
    OPTION_SECRET_FILE, /* a path; the file's content is stored at `aux` */
    OPTION_CHOICE,      /* one of `choices`; the struct holds its index, as an int or a bool */
    OPTION_COMMANDS,    /* a JSON object: config/commands.c */
    OPTION_LIST         /* texts; `min` and `max` limit their count, a size_t at `aux` */
};

struct option_def {
    const char *name; /* "lock.ttl_ms", or "log_level" outside of any section */
    size_t offset;    /* of the field in struct config */
    size_t size;      /* of the field, or of one item of a list */
    size_t aux;       /* offset of a second field; see option_type */
    int64_t min;
    int64_t max;
    const char *default_text;
    const char *const *choices; /* ended by NULL */
    const char *unit;           /* "" = none */
    const char *help;
    enum option_type type;
    bool is_credential; /* a path that systemd's credential stands for, if it is empty */
    bool is_real_time;  /* not multiplied by time_scale, such as the timeouts of servers */
    bool is_reloadable; /* a daemon adopts a new value at SIGHUP */
    bool is_expert;     /* its default suits nearly everyone; listed separately */
};

extern const struct option_def config_options[];
extern const size_t config_option_count;

/* Returns the option named "section.key" or "key", or NULL. */
const struct option_def *option_find(const char *name);

/* Writes the variable's name, such as "CLAIMD_LOCK_TTL_MS"; false if it doesn't fit. */
bool option_env_name(const struct option_def *o, char *ret_name, size_t size);

static inline const void *option_value(const struct option_def *o, const struct config *c)
{
    return (const char *)c + o->offset;
}

static inline void option_came_from(const struct option_def *o, struct config *c,
                                    enum config_origin origin)
{
    c->origins[o - config_options] = (unsigned char)origin;
}

/* Applies the values from the environment. Returns INVALID also for a variable that looks like a
 * mistyped key. */
enum status config_environment(struct config *c, struct err *err) MUST_USE;

/* Writes a value for display. The password in a URL is hidden, and so is all of a conninfo that
 * seems to contain one. True if anything was hidden. */
bool option_mask(const char *value, char *ret_text, size_t size);

static inline void *option_field(const struct option_def *o, struct config *c)
{
    return (char *)c + o->offset;
}

/* Writes the allowed values, for errors and the manual: "1000 to 600000 ms", "quarantine or trust",
 * "1 to 9 texts". */
void option_range_text(const struct option_def *o, char *ret_text, size_t size);

/* Returns INVALID with "lock.ttl_ms: 5 is not allowed; allowed: …"; `value` is a value or a
 * description of it. */
enum status option_refuse(const struct option_def *o, const char *value, struct err *err) MUST_USE;

/* The setters check a value against the table, then store it. On failure they return INVALID, and
 * the error says what is allowed. */
enum status option_set_number(const struct option_def *o, struct config *c, int64_t value,
                              struct err *err) MUST_USE;
enum status option_set_real(const struct option_def *o, struct config *c, double value,
                            struct err *err) MUST_USE;
/* For TEXT, PATH, SECRET_FILE and CHOICE. Relative paths start at `folder`, unless it is NULL. */
enum status option_set_text(const struct option_def *o, struct config *c, const char *value,
                            const char *folder, struct err *err) MUST_USE;
void option_list_clear(const struct option_def *o, struct config *c);
enum status option_list_add(const struct option_def *o, struct config *c, const char *value,
                            struct err *err) MUST_USE;
enum status option_list_check(const struct option_def *o, struct config *c,
                              struct err *err) MUST_USE;

/* Parses and stores a value given as text, as in the environment and the defaults. Lists are
 * separated by commas. */
enum status option_parse(const struct option_def *o, struct config *c, const char *text,
                         struct err *err) MUST_USE;

/* An object of commands, each an array of texts. INVALID: the place, and what is allowed. */
enum status option_set_commands(const struct option_def *o, struct config *c, const json_t *value,
                                struct err *err) MUST_USE;

/* Returns the number of items in a list, which are stored contiguously. */
size_t option_list_count(const struct option_def *o, const struct config *c);

/* Reads and checks the defaults, the file, the environment and the secrets. Times are not scaled
 * yet: config_finish() does that. */
enum status config_read(const char *path, struct config *ret, struct err *err) MUST_USE;
void config_finish(struct config *c);

/* Checks what a single key can't determine, such as times that must fit each other
 * (config/check.c). Times are not scaled yet. */
enum status config_check_relations(const struct config *c, struct err *err) MUST_USE;

#endif
