/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the results of `all`. */
#include "base/cleanup.h"
#include "bench/workloads.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>

#define SCRIPT BENCH_SOURCE_DIR "/plots.gp"
#define PATH_SIZE 512
#define NO_GNUPLOT 127

typedef int plot_write_fn(FILE *out, const json_t *results); /* returns the number of rows */

/* Returns the first result of the workload: that of all peers, not the one of only River. */
static const json_t *result_of(const json_t *results, const char *workload)
{
    size_t i = 0;
    const json_t *result = NULL;
    json_array_foreach(results, i, result)
    {
        const char *name = json_string_value(json_object_get(result, "workload"));
        if (name != NULL && strcmp(name, workload) == 0) {
            return result;
        }
    }
    return NULL;
}

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
    const char *its = json_string_value(json_object_get(object, name));
    return its != NULL ? its : "?";
}

/* True for the results of peers in a kind of work, without claimd's own, which other workloads
 * measure too. */
static bool is_peer(const json_t *one, const char *work)
{
    return strcmp(text(one, "work"), work) == 0 && strcmp(text(one, "name"), "claimd") != 0;
}

/* Writes bars: name, jobs/s. */
static int write_throughput(FILE *out, const json_t *results)
{
    int rows = 0;
    size_t i = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(result_of(results, "drain"), "contenders"), i, one)
    {
        (void)fprintf(out, "\"%s\" %.0f\n", text(one, "name"), number(one, "jobs_per_s"));
        rows++;
    }
    json_array_foreach(json_object_get(result_of(results, "peers"), "peers"), i, one)
    {
        if (is_peer(one, "drain")) {
            (void)fprintf(out, "\"%s, %s\" %.0f\n", text(one, "name"), text(one, "settings"),
                          number(one, "jobs_per_s"));
            rows++;
        }
    }
    return rows;
}

/* Writes bars: name, p50, p99. */
static int write_start(FILE *out, const json_t *results)
{
    static const char *const workloads[] = {"start", "peers"};
    int rows = 0;
    for (size_t w = 0; w < ARRAY_COUNT(workloads); w++) {
        size_t i = 0;
        const json_t *one = NULL;
        json_array_foreach(json_object_get(result_of(results, workloads[w]), "peers"), i, one)
        {
            if (w > 0 && !is_peer(one, "start")) {
                continue;
            }
            (void)fprintf(out, "\"%s, %s, %s\" %.3f %.3f\n", text(one, "name"),
                          text(one, "settings"), text(one, "work"), number(one, "p50_ms"),
                          number(one, "p99_ms"));
            rows++;
        }
    }
    return rows;
}

/* Writes bars: name, CPU per job. */
static int write_realistic(FILE *out, const json_t *results)
{
    int rows = 0;
    size_t i = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(result_of(results, "realistic"), "peers"), i, one)
    {
        (void)fprintf(out, "\"%s, %s\" %.1f\n", text(one, "work"), text(one, "name"),
                      number(one, "cpu_us_per_job"));
        rows++;
    }
    return rows;
}

/* Writes lines: a block for each, with its title, then clients and jobs/s. */
static int write_scale(FILE *out, const json_t *results)
{
    int rows = 0;
    size_t i = 0;
    const json_t *one = NULL;
    const char *title = "";
    json_array_foreach(json_object_get(result_of(results, "scale"), "scale"), i, one)
    {
        if (i == 0) {
            (void)fprintf(out, "\"claimd\"\n");
        }
        (void)fprintf(out, "%.0f %.0f\n", number(one, "workers"), number(one, "jobs_per_s"));
        rows++;
    }
    json_array_foreach(json_object_get(result_of(results, "strategies"), "strategies"), i, one)
    {
        if (strcmp(title, text(one, "strategy")) != 0) {
            title = text(one, "strategy");
            (void)fprintf(out, "%s\"%s\"\n", rows > 0 ? "\n\n" : "", title);
        }
        (void)fprintf(out, "%.0f %.0f\n", number(one, "clients"), number(one, "jobs_per_s"));
        rows++;
    }
    return rows;
}

static const struct plot {
    const char *name;
    plot_write_fn *write;
} plots[] = {{"throughput", write_throughput},
             {"scale", write_scale},
             {"start", write_start},
             {"realistic", write_realistic}};

/* Runs gnuplot in the folder; returns its exit code. */
static int run_gnuplot(const char *folder, const char *name)
{
    char set_name[64];
    int status = 0;
    (void)snprintf(set_name, sizeof set_name, "name = '%s'", name);
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(folder) == 0) {
            (void)execlp("gnuplot", "gnuplot", "-e", set_name, SCRIPT, (char *)NULL);
        }
        _exit(NO_GNUPLOT);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

static void draw(const char *folder, const struct plot *plot, const json_t *results)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s.dat", folder, plot->name);
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        (void)fprintf(stderr, "bench: can't write %s\n", path);
        return;
    }
    int rows = plot->write(f, results);
    (void)fclose(f);
    int code = rows > 0 ? run_gnuplot(folder, plot->name) : EXIT_SUCCESS;
    if (rows == 0) {
        (void)fprintf(stderr, "bench: nothing to draw in %s.svg\n", plot->name);
    } else if (code == NO_GNUPLOT) {
        (void)fprintf(stderr, "bench: THERE IS NO GNUPLOT, so no %s.svg: apt-get install gnuplot\n",
                      plot->name);
    } else if (code != EXIT_SUCCESS) {
        (void)fprintf(stderr, "bench: gnuplot ended with %d for %s.svg\n", code, plot->name);
    }
}

void plots_draw(const char *folder, const json_t *results)
{
    for (size_t i = 0; i < ARRAY_COUNT(plots); i++) {
        draw(folder, &plots[i], results);
    }
}
