/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/options.h"

#include "base/parse.h"

#include <stdio.h>
#include <time.h>

#define SECONDS_DEFAULT 60
#define SECONDS_MAX 86400
#define SCALE_DEFAULT 0.25
#define MINUTE 60

const char *options_usage(void)
{
    return "usage: ./dev chaos [OPTION…]\n"
           "A cluster of real processes under random faults, and a verdict.\n"
           "  --minutes N           so long a storm with the real constants (time scale 1)\n"
           "  --seconds N           so long a storm (60), time scale 0.25\n"
           "  --seed S              all random choices; default: the clock\n"
           "  --time-scale X        0.1 to 1: all times of claimd, and length and distance of "
           "faults\n"
           "  --only NAME,…         these faults alone; --list names them\n"
           "  --without NAME,…      not these\n"
           "  --workers N --schedulers N --slots N --rate JOBS_PER_SECOND\n"
           "  --world N             a world that is drawn from its number: workers, queues, "
           "limits, "
           "kinds,\n"
           "                        load; with the real constants, and faults late in the run\n"
           "  --map ROWS            also claimctl map over a table of so many rows, and kills of "
           "it\n"
           "  --programs            half of the jobs are those of Python programs\n"
           "  --bug N               first of all: a build with this bug, which must be reported\n"
           "  --folder DIR          history, logs and all that a verdict needs; kept\n"
           "  --keep                the folder stays after a good run, too\n"
           "  --replay FOLDER       judge an earlier run again\n"
           "  --outages             no storm: each server is away for 3 s, alone and in pairs, "
           "with "
           "the real\n"
           "                        constants; --only pg,r0,r1+pg,… chooses\n"
           "  --list                the faults: name, distance in the mean, length, what they are; "
           "or that world\n"
           "The last line is `chaos: OK …` (exit 0) or `chaos: FAILED … seed=S FOLDER` (exit 1).\n";
}

static enum status read_i64(const char *name, const char *value, int64_t min, int64_t max,
                            int64_t *ret, struct err *err)
{
    struct err why = {0};
    if (parse_i64(value, strlen(value), min, max, ret, &why) != STATUS_OK) {
        return err_fail(err, STATUS_INVALID, "%s '%s': must be a number of %lld to %lld", name,
                        value, (long long)min, (long long)max);
    }
    return STATUS_OK;
}

static enum status read_double(const char *name, const char *value, double min, double max,
                               double *ret, struct err *err)
{
    char *end = NULL;
    double x = strtod(value, &end);
    if (end == value || *end != '\0' || !(x >= min && x <= max)) {
        return err_fail(err, STATUS_INVALID, "%s '%s': must be a number of %g to %g", name, value,
                        min, max);
    }
    *ret = x;
    return STATUS_OK;
}

static enum status read_text(const char *name, const char *value, char *ret, size_t size,
                             struct err *err)
{
    int n = snprintf(ret, size, "%s", value);
    if (n <= 0 || (size_t)n >= size) {
        return err_fail(err, STATUS_INVALID, "%s: must have 1 to %zu bytes", name, size - 1);
    }
    return STATUS_OK;
}

struct seen {
    bool has_scale;
    bool has_minutes;
};

static enum status read_one(const char *name, const char *value, struct options *o,
                            struct seen *seen, struct err *err)
{
    int64_t number = 0;
    enum status st = STATUS_OK;
    if (strcmp(name, "--minutes") == 0) {
        st = read_i64(name, value, 1, SECONDS_MAX / MINUTE, &number, err);
        o->seconds = number * MINUTE;
        seen->has_minutes = true;
    } else if (strcmp(name, "--seconds") == 0) {
        st = read_i64(name, value, 1, SECONDS_MAX, &o->seconds, err);
    } else if (strcmp(name, "--seed") == 0) {
        st = read_i64(name, value, 0, INT64_MAX, &number, err);
        o->seed = (uint64_t)number;
    } else if (strcmp(name, "--time-scale") == 0) {
        st = read_double(name, value, 0.1, 1, &o->time_scale, err);
        seen->has_scale = true;
    } else if (strcmp(name, "--only") == 0) {
        st = read_text(name, value, o->only, sizeof o->only, err);
    } else if (strcmp(name, "--without") == 0) {
        st = read_text(name, value, o->without, sizeof o->without, err);
    } else if (strcmp(name, "--folder") == 0) {
        st = read_text(name, value, o->folder, sizeof o->folder, err);
    } else if (strcmp(name, "--replay") == 0) {
        st = read_text(name, value, o->replay, sizeof o->replay, err);
    } else if (strcmp(name, "--workers") == 0) {
        st = read_i64(name, value, 1, 8, &o->workers, err);
    } else if (strcmp(name, "--schedulers") == 0) {
        st = read_i64(name, value, 1, 3, &o->schedulers, err);
    } else if (strcmp(name, "--slots") == 0) {
        st = read_i64(name, value, 1, 64, &o->slots, err);
    } else if (strcmp(name, "--rate") == 0) {
        st = read_double(name, value, 0.1, 1000, &o->rate, err);
    } else if (strcmp(name, "--world") == 0) {
        st = read_i64(name, value, 1, INT64_MAX, &number, err);
        o->world = (uint64_t)number;
    } else if (strcmp(name, "--map") == 0) {
        st = read_i64(name, value, 1, 1000000, &o->map_rows, err);
    } else if (strcmp(name, "--bug") == 0) {
        st = read_i64(name, value, 1, 99, &o->bug, err);
    } else {
        st = err_fail(err, STATUS_INVALID, "unknown option '%s': --help lists them", name);
    }
    return st;
}

static bool read_flag(const char *name, struct options *o)
{
    if (strcmp(name, "--list") == 0) {
        o->is_list = true;
    } else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        o->is_help = true;
    } else if (strcmp(name, "--keep") == 0) {
        o->is_kept = true;
    } else if (strcmp(name, "--outages") == 0) {
        o->is_outages = true;
    } else if (strcmp(name, "--programs") == 0) {
        o->has_programs = true;
    } else {
        return false;
    }
    return true;
}

enum status options_read(int argc, char *const *argv, struct options *ret, struct err *err)
{
    struct seen seen = {0};
    struct options o = {.seconds = SECONDS_DEFAULT,
                        .seed = (uint64_t)time(NULL),
                        .time_scale = SCALE_DEFAULT,
                        .workers = 4,
                        .schedulers = 2,
                        .slots = 4};
    for (int i = 1; i < argc; i++) {
        if (read_flag(argv[i], &o)) {
            continue;
        }
        if (i + 1 == argc) {
            return err_fail(err, STATUS_INVALID, "'%s': unknown, or its value is missing", argv[i]);
        }
        enum status st = read_one(argv[i], argv[i + 1], &o, &seen, err);
        if (st != STATUS_OK) {
            return st;
        }
        i++;
    }
    if (o.map_rows > 0 && (o.world > 0 || o.is_outages)) {
        return err_fail(err, STATUS_INVALID, "--map: not with --world or --outages");
    }
    if (o.has_programs && o.world > 0) {
        return err_fail(err, STATUS_INVALID,
                        "--programs: not with --world, which has kinds of its own");
    }
    if ((seen.has_minutes || o.is_outages || o.world > 0) && !seen.has_scale) {
        o.time_scale = 1;
    }
    *ret = o;
    return STATUS_OK;
}

static enum status check_list(const char *option, const char *list, options_name_fn *is_name,
                              const char *hint, struct err *err)
{
    for (const char *at = list; *at != '\0';) {
        size_t len = strcspn(at, ",");
        if (!is_name(at, len)) {
            return err_fail(err, STATUS_INVALID, "%s: there is no '%.*s': %s", option, (int)len, at,
                            hint);
        }
        at += len;
        at += *at == ',' ? 1 : 0;
    }
    return STATUS_OK;
}

enum status options_check_names(const struct options *options, options_name_fn *is_name,
                                const char *hint, struct err *err)
{
    enum status st = check_list("--only", options->only, is_name, hint, err);
    if (st != STATUS_OK) {
        return st;
    }
    return check_list("--without", options->without, is_name, hint, err);
}

static bool names(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; *at != '\0';) {
        size_t word = strcspn(at, ",");
        if (word == len && memcmp(at, name, len) == 0) {
            return true;
        }
        at += word;
        at += *at == ',' ? 1 : 0;
    }
    return false;
}

bool options_want(const struct options *o, const char *name)
{
    return (o->only[0] == '\0' || names(o->only, name)) && !names(o->without, name);
}
