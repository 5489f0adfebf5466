/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of claimd-chaos. */
#ifndef CLAIMD_TESTS_CHAOS_OPTIONS_H
#define CLAIMD_TESTS_CHAOS_OPTIONS_H

#include "base/err.h"
#include "cluster/servers.h"

#include <stddef.h>
#include <stdint.h>

#define OPTIONS_TEXT_MAX 1024

struct options {
    int64_t seconds; /* duration of the storm, unscaled */
    uint64_t seed;
    double time_scale; /* scales all times of claimd, and the distance and length of faults */
    int64_t workers;
    int64_t schedulers;
    int64_t slots;
    double rate;                    /* jobs per second; 0 = by time_scale */
    char only[OPTIONS_TEXT_MAX];    /* names separated by commas; "" = all */
    char without[OPTIONS_TEXT_MAX]; /* likewise; "" = none */
    char folder[SERVER_PATH_MAX];   /* folder of the run; "" = a new one below $TMPDIR */
    char replay[SERVER_PATH_MAX];   /* a folder to check instead of running */
    int64_t bug;                    /* 0 = none */
    int64_t map_rows;               /* rows of a map; 0 = none */
    uint64_t world;                 /* number of a drawn world; 0 = the usual one */
    bool is_list;
    bool is_help;
    bool is_outages;
    bool has_programs; /* half of the load's jobs have handlers that are programs */
    bool is_kept;      /* keeps the folder of a good run, too */
};

/* On INVALID, err names the argument and the allowed values. */
enum status options_read(int argc, char *const *argv, struct options *ret,
                         struct err *err) MUST_USE;
const char *options_usage(void);

/* Returns INVALID if a word of --only or --without is not a name; `hint` lists the names. */
typedef bool options_name_fn(const char *name, size_t len);
enum status options_check_names(const struct options *options, options_name_fn *is_name,
                                const char *hint, struct err *err) MUST_USE;

bool options_want(const struct options *o, const char *name); /* decides by --only and --without */

#endif
