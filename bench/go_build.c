/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/go_build.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cluster/servers.h"

#include <stdio.h>
#include <stdlib.h>

#define BUILD_US (900 * US_PER_S) /* includes building Go's library, and downloads */
#define OUTPUT_MAX ((size_t)1 << 20)
#define TOLD_MAX 150 /* last characters of its output to report */

enum status go_build(const char *source, const char *dir, const char *name, char *ret_program,
                     size_t size, struct err *err)
{
    char home[SERVER_PATH_MAX + 16];
    char cache[SERVER_PATH_MAX + 32];
    char path[SERVER_PATH_MAX + 32];
    const char *kept = getenv(GO_KEPT_ENV);
    (void)snprintf(home, sizeof home, "HOME=%s/go", kept != NULL ? kept : dir);
    (void)snprintf(cache, sizeof cache, "GOCACHE=%s/go/cache", kept != NULL ? kept : dir);
    (void)snprintf(path, sizeof path, "GOPATH=%s/go/path", kept != NULL ? kept : dir);
    (void)snprintf(ret_program, size, "%s/%s", dir, name);
    const char *const env[] = {home, cache, path, "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", NULL};
    const char *const argv[] = {"go", "build",     "-C", source, "-buildvcs=false",
                                "-o", ret_program, ".",  NULL};
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    int code = -1;
    enum status st = program_run(argv, env, BUILD_US, &out, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (code != 0) {
        size_t told = out.len < TOLD_MAX ? out.len : TOLD_MAX;
        const char *end = told > 0 ? (const char *)buf_at(&out) + out.len - told : "";
        return err_fail(err, STATUS_UNAVAILABLE, "go build: %.*s", (int)told, end);
    }
    return STATUS_OK;
}
