/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload locks: redsync, built here and run on the same masters, for comparison. */
#include "base/buf.h"
#include "base/clock.h"
#include "bench/locks.h"

#include <stdio.h>

#define BUILD_US (900 * US_PER_S) /* with all of Go's library, and fetching */
#define GRACE_US (30 * US_PER_S)
#define OUTPUT_MAX ((size_t)1 << 20)

/* Everything that it fetches and builds lies in the world's directory, and goes with it. */
enum status rival_build(struct locks_world *w, struct err *err)
{
    char home[SERVER_PATH_MAX + 16];
    char cache[SERVER_PATH_MAX + 32];
    char path[SERVER_PATH_MAX + 32];
    (void)snprintf(home, sizeof home, "HOME=%s/go", w->dir);
    (void)snprintf(cache, sizeof cache, "GOCACHE=%s/go/cache", w->dir);
    (void)snprintf(path, sizeof path, "GOPATH=%s/go/path", w->dir);
    (void)snprintf(w->rival, sizeof w->rival, "%s/redsync", w->dir);
    const char *const env[] = {home, cache, path, "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", NULL};
    const char *const argv[] = {
        "go",     "build", "-C", BENCH_SOURCE_DIR "/rivals/redsync", "-buildvcs=false", "-o",
        w->rival, ".",     NULL};
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    int code = -1;
    enum status st = program_run(argv, env, BUILD_US, &out, &code, err);
    if (st == STATUS_OK && code != 0) {
        const char *text = out.len > 0 ? buf_at(&out) : "";
        size_t skip = out.len > 300 ? out.len - 300 : 0;
        st = err_fail(err, STATUS_UNAVAILABLE, "go build: %s", text + skip);
    }
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
