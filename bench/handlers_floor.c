/* SPDX-License-Identifier: Apache-2.0
 *
 * Floors for programs as handlers: the same program without a runner, and processes that do nothing
 * but start others. */
#include "base/clock.h"
#include "bench/crew.h"
#include "bench/handlers.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- the program, fed from a file ---- */

/* Writes the lines of jobs as a runner does. */
static enum status write_lines(const char *path, int64_t jobs, struct err *err)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "open %s", path);
    }
    (void)fputs("{\"claimd\":[1,1]}\n", file);
    for (int64_t i = 1; i <= jobs; i++) {
        (void)fprintf(file,
                      "{\"n\":%" PRId64 ",\"job\":%" PRId64
                      ",\"kind\":\"py_work\",\"attempt\":1,\"max_attempts\":25,\"crashes\":0,"
                      "\"generation\":0,\"fence\":%" PRId64 ",\"key\":\"job:%" PRId64
                      "\",\"queue\":\"default\",\"timeout_ms\":1800000,\"created_at_us\":"
                      "1700000000000000,\"args\":{},\"tags\":[],\"metadata\":{},"
                      "\"checkpoint\":null,\"predecessors\":null}\n",
                      i, i, i, i);
    }
    return fclose(file) == 0 ? STATUS_OK
                             : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
}

static _Noreturn void be_program(int in, int out)
{
    char *const argv[] = {(char *)(uintptr_t)HANDLERS_PYTHON,
                          (char *)(uintptr_t)(BENCH_SOURCE_DIR "/handlers/work.py"), NULL};
    char *const env[] = {(char *)(uintptr_t) "CLAIMD_IN=3", (char *)(uintptr_t) "CLAIMD_OUT=4",
                         (char *)(uintptr_t)("PYTHONPATH=" BENCH_SOURCE_DIR "/../sdk/python"),
                         NULL};
    if (dup2(in, 10) == 10 && dup2(out, 11) == 11 && dup2(10, 3) == 3 && dup2(11, 4) == 4) {
        (void)close_range(5, ~0U, 0);
        (void)execve(argv[0], argv, env);
    }
    _exit(127);
}

static int64_t cpu_us(const struct rusage *used)
{
    return (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * US_PER_S + used->ru_utime.tv_usec +
           used->ru_stime.tv_usec;
}

static enum status cpu_of_program(const char *path, int64_t *ret_us, struct err *err)
{
    struct rusage used = {0};
    int status = -1;
    autoclose int in = open(path, O_RDONLY | O_CLOEXEC);
    autoclose int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t pid = in < 0 || out < 0 ? -1 : fork();
    if (pid == 0) {
        be_program(in, out);
    }
    if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "%s: wait status %d", HANDLERS_PYTHON, status);
    }
    *ret_us = cpu_us(&used);
    return STATUS_OK;
}

/* Subtracts the CPU of a run without jobs, which is that of starting. */
enum status handlers_floor_python(const struct cluster *c, int64_t jobs, double *ret_us,
                                  struct err *err)
{
    char path[SERVER_PATH_MAX + 16];
    int64_t us[2] = {0};
    (void)snprintf(path, sizeof path, "%s/lines", c->dir);
    for (size_t i = 0; i < 2; i++) {
        enum status st = write_lines(path, i == 0 ? 0 : jobs, err);
        if (st == STATUS_OK) {
            st = cpu_of_program(path, &us[i], err);
        }
        if (st != STATUS_OK) {
            return st;
        }
    }
    (void)unlink(path);
    *ret_us = (double)(us[1] - us[0]) / (double)jobs;
    return STATUS_OK;
}

/* ---- starts alone ---- */

static enum status start_one(struct err *err)
{
    char *const argv[] = {(char *)(uintptr_t)HANDLERS_ONCE, NULL};
    char *const env[] = {NULL};
    int status = -1;
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): as runners do */
    if (pid == 0) {
        (void)execve(argv[0], argv, env);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "%s: wait status %d", HANDLERS_ONCE, status);
    }
    return STATUS_OK;
}

static enum status start_many(const void *ctx, struct crew_member *self, struct err *err)
{
    const int64_t *starts = ctx;
    enum status st = crew_ready(self, err);
    for (int64_t i = 0; i < *starts && st == STATUS_OK; i++) {
        st = start_one(err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    struct rusage used[2] = {0};
    (void)getrusage(RUSAGE_SELF, &used[0]);
    (void)getrusage(RUSAGE_CHILDREN, &used[1]);
    self->counts[0] = cpu_us(&used[0]) + cpu_us(&used[1]);
    return crew_done(self, err);
}

enum status handlers_floor_once(struct cluster *c, size_t processes, int64_t starts,
                                double *ret_per_s, double *ret_us, struct err *err)
{
    struct crew_result done = {0};
    int64_t each = 1 + starts / (int64_t)processes;
    enum status st = crew_run(c, processes, start_many, &each, &done, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_per_s = 1e6 * (double)each * (double)processes / (double)(done.us + 1);
    *ret_us = (double)done.counts[0] / (double)each / (double)processes;
    return STATUS_OK;
}
