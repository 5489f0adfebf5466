/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload locks: builds redsync and runs it on the same masters, for comparison. */
#include "base/buf.h"
#include "base/clock.h"
#include "bench/go_build.h"
#include "bench/locks.h"

#include <stdio.h>

#define GRACE_US (30 * US_PER_S)
#define OUTPUT_MAX ((size_t)1 << 20)

enum status rival_build(struct locks_world *w, struct err *err)
{
    enum status st = go_build(BENCH_SOURCE_DIR "/rivals/redsync", w->dir, "redsync", w->rival,
                              sizeof w->rival, err);
    if (st != STATUS_OK) {
        w->rival[0] = '\0';
    }
    return st;
}

enum status rival_run(const struct locks_world *w, int64_t seconds, size_t in_flight,
                      bool is_auto_pipelined, double *ret_per_s, struct err *err)
{
    char seconds_text[24];
    char in_flight_text[24];
    const char *argv[6 + LOCKS_MASTERS + 1] = {
        w->rival,     is_auto_pipelined ? "-auto" : "-auto=false",
        "-seconds",   seconds_text,
        "-in-flight", in_flight_text};
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    double per_s = 0;
    int failed = -1;
    int code = -1;
    (void)snprintf(seconds_text, sizeof seconds_text, "%lld", (long long)seconds);
    (void)snprintf(in_flight_text, sizeof in_flight_text, "%zu", in_flight);
    for (size_t i = 0; i < LOCKS_MASTERS; i++) {
        argv[6 + i] = w->servers[i].path;
    }
    enum status st = program_run(argv, NULL, seconds * US_PER_S + GRACE_US, &out, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *text = out.len > 0 ? buf_at(&out) : "";
    if (code != 0 || sscanf(text, "{\"pairs_per_s\": %lf, \"failed\": %d}", &per_s, &failed) != 2) {
        return err_fail(err, STATUS_INTERNAL, "redsync ended with %d: %.200s", code, text);
    }
    if (failed != 0) {
        return err_fail(err, STATUS_CONFLICT, "redsync failed %d times", failed);
    }
    *ret_per_s = per_s;
    return STATUS_OK;
}
