/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/judge.h"

#include "base/buf.h"
#include "base/clock.h"

#include <stdio.h>

#define CHECK_US (600 * US_PER_S)
#define CHECK_OUTPUT_MAX ((size_t)4 << 20)

static enum status run_check(const struct folder *f, struct judgement *j, struct err *err)
{
    char program[SERVER_PATH_MAX];
    autobuf struct buf out = BUF_INIT(CHECK_OUTPUT_MAX);
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - sizeof "-check");
    if (n <= 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "find my own path");
    }
    memcpy(program + n, "-check", sizeof "-check");
    j->has_check = access(program, X_OK) == 0;
    if (!j->has_check) {
        return STATUS_OK;
    }
    const char *const argv[] = {program, f->path, NULL};
    enum status st = program_run(argv, NULL, CHECK_US, &out, &j->check_code, err);
    if (out.len > 0) {
        (void)printf("%s", buf_at(&out));
    }
    return st;
}

enum status judge_folder(const struct folder *f, struct judgement *ret, struct err *err)
{
    enum status st = verdict_judge(f, &ret->verdict, err);
    if (st != STATUS_OK) {
        return st;
    }
    return run_check(f, ret, err);
}

bool judge_is_good(const struct judgement *j)
{
    return j->verdict.violations == 0 && j->process_violations == 0 && j->check_code == 0 &&
           j->drain_us >= 0;
}

int judge_last_line(const struct judgement *j, const struct options *options,
                    const struct folder *f, bool is_whole)
{
    const struct verdict *v = &j->verdict;
    bool is_good = is_whole && judge_is_good(j);
    (void)printf(
        "chaos: %s jobs=%lld unknown=%lld completed=%lld discarded=%lld cancelled=%lld"
        " starts=%lld overlaps=%lld kills=%lld stops=%lld empty=%lld pg_restarts=%lld"
        " failovers=%lld clock_steps=%lld violations=%lld drained_s=%.1f check=%s seed=%llu",
        is_good ? "OK" : "FAILED", (long long)v->acked, (long long)v->unknown,
        (long long)v->completed, (long long)v->discarded, (long long)v->cancelled,
        (long long)v->starts, (long long)v->overlaps, (long long)j->counts[COUNT_KILL],
        (long long)j->counts[COUNT_STOP], (long long)j->counts[COUNT_EMPTY],
        (long long)j->counts[COUNT_RESTART], (long long)j->counts[COUNT_FAILOVER],
        (long long)j->counts[COUNT_CLOCK], (long long)(v->violations + j->process_violations),
        j->drain_us < 0 ? -1.0 : (double)j->drain_us / (double)US_PER_S,
        !j->has_check        ? "none"
        : j->check_code == 0 ? "good"
                             : "bad",
        (unsigned long long)options->seed);
    bool is_kept =
        !is_good || options->is_kept || options->folder[0] != '\0' || options->replay[0] != '\0';
    if (is_kept) {
        dir_keep(f->path);
        (void)printf(" %s\n", f->path);
    } else {
        (void)printf("\n");
        dir_remove(f->path);
    }
    return is_good ? 0 : 1;
}
