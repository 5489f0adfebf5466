/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-chaos-check: runs all checkers on the folder of a run. */
#include "check.h"

#include <sys/wait.h>

static void (*const checkers[])(struct run *) = {
    check_order,    check_rows,     check_intervals, check_sets,  check_edits,  check_ties,
    check_recovery, check_waits,    check_deaths,    check_model, check_limits, check_places,
    check_growth,   check_canaries, check_sql,       check_idle};

/* Reports what the kit itself saw: a daemon that crashed, or one that did not end. */
static void check_processes(struct run *r)
{
    const struct job *none = &r->jobs[0];
    for (size_t i = 0; i < none->event_count; i++) {
        const struct event *e = &none->events[i];
        if (e->source == FROM_NEMESIS && e->phase == PH_VIOLATION) {
            violation(r, "world", "process", 0, "%.*s", (int)e->line_len, e->line);
        }
    }
}

/* Asks Porcupine, if it was built. It cannot express commits that a standby had not received. */
static void ask_second_opinion(struct run *r)
{
    char program[4096];
    ssize_t len =
        readlink("/proc/self/exe", program, sizeof program - sizeof "claimd-chaos-porcupine");
    char *slash = len <= 0 ? NULL : memrchr(program, '/', (size_t)len);
    if (slash == NULL || fault_in(r, TRAIT_LOSES_COMMITS, 0, NEVER) != NULL) {
        return;
    }
    memcpy(slash + 1, "claimd-chaos-porcupine", sizeof "claimd-chaos-porcupine");
    if (access(program, X_OK) != 0) {
        return;
    }
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)execl(program, program, r->path, (char *)NULL);
        _exit(2);
    }
    int how = 0;
    bool is_over = child > 0 && waitpid(child, &how, 0) == child;
    if (is_over && WIFEXITED(how) && WEXITSTATUS(how) == 1) {
        violation(r, "porcupine", "S3", 0, "no order of some job's requests is possible");
    } else if (!is_over || !WIFEXITED(how) || WEXITSTATUS(how) != 0) {
        note(r, "porcupine", "has no opinion");
    }
}

int main(int argc, char **argv)
{
    static struct run run;
    if (argc != 2 || argv[1][0] == '-') {
        (void)fprintf(stderr, "Usage: claimd-chaos-check FOLDER\n\n"
                              "Judges the folder of a run of ./dev chaos (docs/reliability.md).\n"
                              "Exit codes: 0 all is as promised, 1 a violation, 2 not readable.\n");
        return 2;
    }
    if (!run_load(&run, argv[1])) {
        run_free(&run);
        return 2;
    }
    check_processes(&run);
    for (size_t i = 0; i < ARRAY_COUNT(checkers); i++) {
        checkers[i](&run);
    }
    ask_second_opinion(&run);
    int code = report_end(&run);
    run_free(&run);
    return code;
}
