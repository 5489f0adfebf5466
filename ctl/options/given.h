/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that say what a job is like, read one after the other into what statements take. The
 * first refusal sticks in `err`: what follows reads nothing, and a caller looks once, at its end.
 * An option that wasn't given is NULL. Values live as long as the reader. */
#ifndef CLAIMD_CTL_OPTIONS_GIVEN_H
#define CLAIMD_CTL_OPTIONS_GIVEN_H

#include "base/text.h"
#include "ctl/core/ctl.h"

#define GIVEN_VALUES_MAX 24

struct given {
    const struct ctl_args *args;
    struct err *err; /* the caller's, empty */
    struct text values[GIVEN_VALUES_MAX];
    size_t count;
};

#define GIVEN(the_args, the_err)             \
    {                                        \
        .args = (the_args), .err = (the_err) \
    }
#define auto_given CLEANUP(given_release)
void given_release(struct given *g);

/* "123 microseconds". */
const char *given_interval(struct given *g, const char *name, int64_t min_us, int64_t max_us);
/* A number of that range. */
const char *given_number(struct given *g, const char *name, int64_t min, int64_t max);
/* Such as these, or `default`: what a job has without. Timeout and grace as intervals. */
const char *given_attempts(struct given *g, const char *name);
const char *given_timeout(struct given *g);
const char *given_grace(struct given *g);
const char *given_backoff(struct given *g);
/* A time with its zone. */
const char *given_time(struct given *g, const char *name);

/* JSON, itself or of the file that it names (`@FILE`), which passed that check; NULL: none. */
typedef enum status given_check(const char *json, size_t len, struct err *err);
const char *given_json(struct given *g, const char *name, given_check *check);

/* All values of an option as an array literal of PostgreSQL, split at commas if so. */
const char *given_array(struct given *g, const char *name, bool is_split);
/* A text that is not empty: in a filter it may be an unset variable, which must not mean "any". */
const char *given_full(struct given *g, const char *name);
/* The tags of a job or of a filter, none of them empty: no filter would find it. */
const char *given_tags(struct given *g, const char *name);
const char *given_ids(struct given *g, const char *name);

/* To each parameter that has no value yet, that of the option of its name, as it is. */
void given_rest(struct given *g, struct verb_call *call);

/* Refused: both of them. */
void given_either(struct given *g, const char *one, const char *other);

#endif
