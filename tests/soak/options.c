/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/options.h"

#include "base/parse.h"

#include <stdio.h>
#include <time.h>

#define JOBS_DEFAULT 1000000
#define JOBS_MAX 100000000
#define JOBS_STEP 1000 /* the mix repeats every thousand jobs */
#define WORKERS 12
#define SCHEDULERS 3
#define SLOTS 4

#ifdef CLAIMD_SEEDED_BUGS
#define HAS_BUGS true
#else
#define HAS_BUGS false
#endif

/* Makes many jobs run longer than a worker may be silent. */
#define MUCH_LONG                                                                          \
    "UPDATE soak.part SET kind = 's_long', queue = 'soak_long', ms = '{1000,12000}' WHERE" \
    " name = 'rare'"

static const struct soak_bug bugs[] = {
    {.name = "nofence", .number = 2, .sql = MUCH_LONG, .stops_until_moved = true},
    {.name = "nowitness", .number = 3, .sql = MUCH_LONG},
    {.name = "noslot",
     .sql = "CREATE OR REPLACE FUNCTION claimd.free_slots(queue text, max_running integer, most"
            " integer) RETURNS integer[] LANGUAGE sql AS"
            " 'SELECT array_agg(g) FROM generate_series(1, most) AS g'"},
};

const char *soak_options_usage(void)
{
    return "usage: ./dev soak [OPTION…]\n"
           "Jobs with all features at once, twelve workers that are killed and stopped, and a "
           "verdict.\n"
           "  --jobs N       so many, whole thousands (1000000)\n"
           "  --seed S       the faults and their targets; default: the clock\n"
           "  --bug NAME     with a mistake that must be reported: nofence, nowitness, noslot\n"
           "  --backlog N    instead: a scheduler that comes to so many jobs, its first hint and "
           "its "
           "memory\n"
           "  --programs     half of the jobs are those of Python programs\n"
           "  --folder DIR   for logs and the handlers' ledger; kept\n"
           "The last line is `soak: OK …` (exit 0) or `soak: FAILED …` (exit 1).\n";
}

static enum status read_bug(const char *name, const struct soak_bug **ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(bugs); i++) {
        if (strcmp(bugs[i].name, name) == 0 && bugs[i].number > 0 && !HAS_BUGS) {
            return err_fail(err, STATUS_INVALID, "--bug %s: needs the build `bugs` (./dev soak)",
                            name);
        }
        if (strcmp(bugs[i].name, name) == 0) {
            *ret = &bugs[i];
            return STATUS_OK;
        }
    }
    return err_fail(err, STATUS_INVALID, "--bug '%s': must be nofence, nowitness or noslot", name);
}

static enum status read_one(const char *name, const char *value, struct soak_options *o,
                            struct err *err)
{
    struct err why = {0};
    int64_t number = 0;
    if (strcmp(name, "--jobs") == 0) {
        if (parse_i64(value, strlen(value), JOBS_STEP, JOBS_MAX, &o->jobs, &why) != STATUS_OK ||
            o->jobs % JOBS_STEP != 0) {
            return err_fail(err, STATUS_INVALID, "--jobs '%s': must be 1000 to %d, by thousands",
                            value, JOBS_MAX);
        }
        return STATUS_OK;
    }
    if (strcmp(name, "--seed") == 0) {
        if (parse_i64(value, strlen(value), 0, INT64_MAX, &number, &why) != STATUS_OK) {
            return err_fail(err, STATUS_INVALID, "--seed '%s': must be a number from 0 on", value);
        }
        o->kit.seed = (uint64_t)number;
        return STATUS_OK;
    }
    if (strcmp(name, "--backlog") == 0) {
        return parse_i64(value, strlen(value), 1, JOBS_MAX, &o->backlog, &why) == STATUS_OK
                   ? STATUS_OK
                   : err_fail(err, STATUS_INVALID, "--backlog '%s': must be 1 to %d", value,
                              JOBS_MAX);
    }
    if (strcmp(name, "--bug") == 0) {
        return read_bug(value, &o->bug, err);
    }
    if (strcmp(name, "--folder") == 0) {
        int n = snprintf(o->kit.folder, sizeof o->kit.folder, "%s", value);
        return n > 0 && (size_t)n < sizeof o->kit.folder
                   ? STATUS_OK
                   : err_fail(err, STATUS_INVALID, "--folder: must have 1 to %zu bytes",
                              sizeof o->kit.folder - 1);
    }
    return err_fail(err, STATUS_INVALID, "unknown option '%s': --help lists them", name);
}

enum status soak_options_read(int argc, char *const *argv, struct soak_options *ret,
                              struct err *err)
{
    struct soak_options o = {.kit = {.time_scale = 1,
                                     .seed = (uint64_t)time(NULL),
                                     .workers = WORKERS,
                                     .schedulers = SCHEDULERS,
                                     .slots = SLOTS},
                             .jobs = JOBS_DEFAULT};
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0) {
            o.kit.is_help = true;
            break;
        }
        if (strcmp(argv[i], "--programs") == 0) {
            o.kit.has_programs = true;
            i--; /* this option has no value */
            continue;
        }
        if (i + 1 == argc) {
            return err_fail(err, STATUS_INVALID, "'%s': unknown, or its value is missing", argv[i]);
        }
        enum status st = read_one(argv[i], argv[i + 1], &o, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (o.backlog > 0) {
        o.kit.workers = 1;
        o.kit.schedulers = 1;
    }
    *ret = o;
    return STATUS_OK;
}
