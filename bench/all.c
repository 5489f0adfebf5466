/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-bench all: runs every workload, one after the other, each in a process of its own; then
 * prints a table of the goals, and plots. */
#include "base/buf.h"
#include "base/clock.h"
#include "bench/goals.h"
#include "bench/workloads.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define RESULTS BENCH_SOURCE_DIR "/results"
#define BUSY_MAX 0.1
#define OUTPUT_MAX ((size_t)16 << 20)
#define WORDS_MAX 12
#define PATH_SIZE 512

/* On two cores, the full runs take about 45 minutes. */
static const struct run {
    const char *full;
    const char *quick;
} runs[] = {
    {"drain --rounds 5", "drain --rounds 1 --jobs 10000"},
    {"start --rounds 5", "start --rounds 1 --samples 20"},
    {"scale --rounds 3 --jobs 150000", "scale --rounds 1 --jobs 5000"},
    {"horizon --rounds 1", "horizon --rounds 1 --jobs 5000"},
    {"enqueue", "enqueue --rounds 1 --jobs 5000 --samples 50"},
    {"steady --seconds 120", "steady --seconds 5"},
    {"idle", "idle --seconds 2"},
    {"backlog --rounds 1 --jobs 10000000", "backlog --rounds 1 --jobs 20000"},
    {"deferred --jobs 10000000", "deferred --jobs 20000 --rate 1000 --seconds 3"},
    {"realistic --rounds 5 --only river", "realistic --rounds 1 --seconds 1 --only claimd"},
    {"realistic --rounds 1 --only celery", "realistic --rounds 1 --seconds 1 --only celery"},
    {"handlers --rounds 5",
     "handlers --rounds 1 --seconds 1 --jobs 2000 --samples 5 --only claimd"},
    {"hoard --rounds 5", "hoard --rounds 1 --jobs 500 --seconds 2"},
    {"far --rounds 3", "far --rounds 1 --seconds 1"},
    {"strategies --rounds 1", "strategies --rounds 1 --jobs 5000"},
    {"locks --json", "locks --json --seconds 1 --rounds 1"},
    {"peers --rounds 1 --samples 100", "peers --rounds 1 --jobs 400 --samples 2"},
    {"peers --rounds 3 --only river", "peers --rounds 1 --jobs 400 --samples 2 --only river"},
    {"features --rounds 1 --jobs 100000", "features --rounds 1 --jobs 1000"},
    {"metrics --rounds 3 --jobs 100000", "metrics --rounds 1 --jobs 5000"},
    {"fairness --rounds 1", "fairness --rounds 1 --seconds 2"},
};

/* ---- one workload ---- */

static _Noreturn void be_workload(const char *words, int out_fd)
{
    char text[256];
    char *argv[WORDS_MAX + 2] = {NULL};
    char *rest = text;
    size_t n = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)snprintf(text, sizeof text, "claimd-bench %s", words);
    for (char *word = NULL; n < WORDS_MAX && (word = strsep(&rest, " ")) != NULL;) {
        argv[n++] = word;
    }
    if (dup2(out_fd, STDOUT_FILENO) >= 0) {
        (void)execv("/proc/self/exe", argv);
    }
    _exit(EXIT_FAILURE);
}

static enum status read_all(int fd, struct buf *out, struct err *err)
{
    for (;;) {
        enum status st = buf_reserve(out, (size_t)64 << 10, err);
        if (st != STATUS_OK) {
            return st;
        }
        ssize_t n = read(fd, buf_at(out) + out->len, (size_t)64 << 10);
        if (n == 0) {
            return STATUS_OK;
        }
        if (n < 0 && errno != EINTR) {
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "read a workload's result");
        }
        if (n > 0) {
            buf_grew(out, (size_t)n);
        }
    }
}

/* Appends the JSON line of the workload; CONFLICT if it is not "ok". */
static enum status run_one(const char *words, struct buf *out, struct err *err)
{
    int pipes[2];
    int status = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "pipe");
    }
    pid_t pid = fork();
    if (pid == 0) {
        be_workload(words, pipes[1]);
    }
    (void)close(pipes[1]);
    enum status st = pid > 0 ? read_all(pipes[0], out, err) : STATUS_UNAVAILABLE;
    (void)close(pipes[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (st != STATUS_OK) {
        return st;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS) {
        return err_fail(err, STATUS_CONFLICT, "failed");
    }
    return STATUS_OK;
}

static enum status run_all(const struct bench_options *options, FILE *lines, json_t *results)
{
    enum status worst = STATUS_OK;
    for (size_t i = 0; i < ARRAY_COUNT(runs); i++) {
        const char *words = options->is_quick ? runs[i].quick : runs[i].full;
        if (options->only != NULL && strstr(words, options->only) == NULL) {
            continue;
        }
        autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
        struct err err = {0};
        int64_t began_us = clock_boot_us();
        (void)fprintf(stderr, "bench: ==== %s\n", words);
        enum status st = run_one(words, &out, &err);
        (void)fprintf(stderr, "bench: ==== %s: %s, %lld s\n", words,
                      st == STATUS_OK ? "ok" : "FAILED",
                      (long long)((clock_boot_us() - began_us) / US_PER_S));
        if (out.len > 0) {
            (void)fwrite(buf_at(&out), 1, out.len, lines);
            (void)fflush(lines);
        }
        json_t *result =
            out.len > 0 ? json_loadb(buf_at(&out), out.len, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
        if (result != NULL) {
            (void)json_array_append_new(results, result);
        }
        worst = st != STATUS_OK ? st : worst;
    }
    return worst;
}

/* ---- all workloads ---- */

static bool is_quiet_enough(const struct bench_options *options)
{
    double share = 0;
    char who[256];
    struct err err = {0};
    if (quiet_look(&share, who, sizeof who, &err) != STATUS_OK) {
        (void)fprintf(stderr, "bench: %s\n", err.msg);
        return options->is_busy_fine;
    }
    if (share <= BUSY_MAX) {
        return true;
    }
    (void)fprintf(stderr,
                  "bench: THIS MACHINE IS BUSY: %.0f %% of its CPUs' time is used already: %s\n"
                  "bench: %s\n",
                  100 * share, who,
                  options->is_busy_fine ? "what is measured now says little"
                                        : "end that first; --busy goes on anyway");
    return options->is_busy_fine;
}

/* Makes RESULTS/DATE-AND-TIME. */
static enum status make_folder(const char *results, char *ret, size_t size, struct err *err)
{
    struct tm tm;
    char text[32];
    time_t now = (time_t)(clock_wall_us() / US_PER_S);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H%M%SZ", gmtime_r(&now, &tm));
    (void)snprintf(ret, size, "%s/%s", results, text);
    if ((mkdir(results, 0755) != 0 && errno != EEXIST) || mkdir(ret, 0755) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "%s", ret);
    }
    return STATUS_OK;
}

static FILE *open_file(const char *folder, const char *name)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        (void)fprintf(stderr, "bench: can't write %s\n", path);
    }
    return f;
}

static int measure(const struct bench_options *options, const char *folder)
{
    int64_t began_us = clock_boot_us();
    json_auto_t *results = json_array();
    FILE *lines = open_file(folder, "results.jsonl");
    if (lines == NULL) {
        return EXIT_FAILURE;
    }
    enum status st = run_all(options, lines, results);
    (void)fclose(lines);
    FILE *table = open_file(folder, "table.txt");
    if (table != NULL) {
        goals_print(table, results);
        (void)fclose(table);
    }
    goals_print(stdout, results);
    plots_draw(folder, results);
    if (options->is_quick) {
        (void)printf("Quick: it ran, but these figures say nothing.\n");
    }
    (void)printf("%s after %.0f minutes; all of it is in %s\n",
                 st == STATUS_OK ? "All totals match" : "SOME WORKLOADS FAILED",
                 (double)(clock_boot_us() - began_us) / (60 * (double)US_PER_S), folder);
    return st == STATUS_OK && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int all_run(const struct bench_options *options)
{
    char folder[PATH_SIZE - 32];
    struct err err = {0};
    if (!is_quiet_enough(options)) {
        return EXIT_FAILURE;
    }
    const char *results = options->results != NULL ? options->results : RESULTS;
    if (make_folder(results, folder, sizeof folder, &err) != STATUS_OK) {
        (void)fprintf(stderr, "bench: %s\n", err.msg);
        return EXIT_FAILURE;
    }
    return measure(options, folder);
}
