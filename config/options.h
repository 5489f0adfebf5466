/* SPDX-License-Identifier: Apache-2.0
 *
 * The table that the whole configuration is made from: reading, checking, the environment's names
 * and docs/config.md. A new key is one line in options.c and one field in struct config. Private to
 * config/, and to its tests. */
#ifndef CLAIMD_CONFIG_OPTIONS_H
#define CLAIMD_CONFIG_OPTIONS_H

#include "config/config.h"

enum option_type {
    OPTION_INT,
    OPTION_TIME,        /* milliseconds outside, int64 microseconds in the struct */
    OPTION_REAL,        /* a double; min and max are thousandths */
    OPTION_TEXT,        /* min is the least length */
    OPTION_PATH,        /* relative ones in a file start at the file's folder */
    OPTION_SECRET_FILE, /* a path; the file's content goes to `aux` */
    OPTION_CHOICE,      /* one of `choices`; its index is stored, in an int or a bool */
    OPTION_LIST         /* texts; min and max count items, `aux` is the size_t count */
};

struct option_def {
    const char *name; /* "lock.ttl_ms", or "log_level" without a section */
    size_t offset;    /* of the field in struct config */
    size_t size;      /* of the field, or of one item of a list */
    size_t aux;       /* offset of what belongs to the field */
    int64_t min;
    int64_t max;
    const char *default_text;
    const char *const *choices; /* NULL-ended */
    const char *unit;           /* "" = none */
    const char *help;
    enum option_type type;
    bool is_real_time;  /* not multiplied by time_scale: what another host's server needs */
    bool is_reloadable; /* SIGHUP: the daemon that reads it takes it on */
    bool is_expert;     /* its default suits nearly everybody; listed apart */
};

extern const struct option_def config_options[];
extern const size_t config_option_count;

/* The option of that name or NULL; `name` is "section.key" or "key". */
const struct option_def *option_find(const char *name);

/* "CLAIMD_LOCK_TTL_MS". Returns false when it doesn't fit. */
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

/* All values of the environment; INVALID, too, for a variable that is nearly one of them. */
enum status config_environment(struct config *c, struct err *err) MUST_USE;

/* A value as it may be shown: the password in a URL, or a conninfo that seems to have one, is not.
 * True: something was hidden. */
bool option_mask(const char *value, char *ret_text, size_t size);

static inline void *option_field(const struct option_def *o, struct config *c)
{
    return (char *)c + o->offset;
}

/* "1000 to 600000 ms", "quarantine or trust", "1 to 9 texts": what a value may be, for messages and
 * the manual. */
void option_range_text(const struct option_def *o, char *ret_text, size_t size);

/* INVALID "lock.ttl_ms: 5 is not allowed; allowed: …"; `value` is a value or a description of
 * it. */
enum status option_refuse(const struct option_def *o, const char *value, struct err *err) MUST_USE;

/* Setters: check the value against the table, then store it. INVALID says what is allowed. */
enum status option_set_number(const struct option_def *o, struct config *c, int64_t value,
                              struct err *err) MUST_USE;
enum status option_set_real(const struct option_def *o, struct config *c, double value,
                            struct err *err) MUST_USE;
/* TEXT, PATH, SECRET_FILE, CHOICE. `folder`: where relative paths start, or NULL. */
enum status option_set_text(const struct option_def *o, struct config *c, const char *value,
                            const char *folder, struct err *err) MUST_USE;
void option_list_clear(const struct option_def *o, struct config *c);
enum status option_list_add(const struct option_def *o, struct config *c, const char *value,
                            struct err *err) MUST_USE;
enum status option_list_check(const struct option_def *o, struct config *c,
                              struct err *err) MUST_USE;

/* The value as text: of the environment and of the defaults. Lists are split at commas. */
enum status option_parse(const struct option_def *o, struct config *c, const char *text,
                         struct err *err) MUST_USE;

/* The items of a list, which lie one after the other. */
size_t option_list_count(const struct option_def *o, const struct config *c);

/* Defaults, file, environment, secrets; checked. Times as they were written (config_finish()
 * scales them). */
enum status config_read(const char *path, struct config *ret, struct err *err) MUST_USE;
void config_finish(struct config *c);

/* What no single key can say: lengths that must fit each other (config/check.c). Times before
 * scaling. */
enum status config_check_relations(const struct config *c, struct err *err) MUST_USE;

#endif
