/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads options that describe a job, one after the other, into parameters of statements. The first
 * refusal stays in `err`: later calls read nothing, so a caller checks only once, at the end. An
 * option that was not given is NULL. Values live as long as the reader. */
#ifndef CLAIMD_CTL_OPTIONS_GIVEN_H
#define CLAIMD_CTL_OPTIONS_GIVEN_H

#include "base/text.h"
#include "ctl/core/ctl.h"

#define GIVEN_VALUES_MAX 24

struct given {
    const struct ctl_args *args;
    struct err *err; /* the caller's, empty at first */
    struct text values[GIVEN_VALUES_MAX];
    size_t count;
};

#define GIVEN(the_args, the_err)             \
    {                                        \
        .args = (the_args), .err = (the_err) \
    }
#define auto_given CLEANUP(given_release)
void given_release(struct given *g);

/* Returns "123 microseconds". */
const char *given_interval(struct given *g, const char *name, int64_t min_us, int64_t max_us);
/* Returns a number of that range. */
const char *given_number(struct given *g, const char *name, int64_t min, int64_t max);
/* These return a value, or `default`: the one of a job without the option. Timeout and grace are
 * returned as intervals. */
const char *given_attempts(struct given *g, const char *name);
const char *given_timeout(struct given *g);
const char *given_grace(struct given *g);
const char *given_backoff(struct given *g);
/* Returns a time with its zone. */
const char *given_time(struct given *g, const char *name);

/* Returns JSON that passed the check: the value itself, or the content of the file that it names
 * (`@FILE`); NULL: not given. */
typedef enum status given_check(const char *json, size_t len, struct err *err);
const char *given_json(struct given *g, const char *name, given_check *check);

/* Returns all values of an option as an array literal of PostgreSQL, split at commas if
 * `is_split`. */
const char *given_array(struct given *g, const char *name, bool is_split);
/* Returns a text; refuses an empty one: in a filter it may be an unset variable, which must not
 * mean "any". */
const char *given_full(struct given *g, const char *name);
/* Returns the tags of a job or of a filter; refuses an empty tag, which no filter would find. */
const char *given_tags(struct given *g, const char *name);
const char *given_ids(struct given *g, const char *name);

/* Sets each parameter that has no value yet to the value of the option with its name, unchanged. */
void given_rest(struct given *g, struct verb_call *call);

/* Refuses the two options together. */
void given_either(struct given *g, const char *one, const char *other);

#endif
