/* SPDX-License-Identifier: Apache-2.0
 *
 * Each planted change that violates a guarantee in a clean run is reported by its checker. In the
 * lines, ' stands for ". */
#include "base/cleanup.h"
#include "chaos/trait.h"
#include "planted.h"
#include "support/suite.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define OUTPUT_MAX 65536

_Static_assert(TRAIT_BEYOND_LOCKS == 2048, "OF_HOST_CLOCK");
_Static_assert((TRAIT_PG_GONE | TRAIT_FAILOVER | TRAIT_LOSES_COMMITS) == 56, "OF_FAILOVER");
_Static_assert(TRAIT_PG_GONE == 32, "OF_PG_GONE");
_Static_assert(TRAIT_REDIS == 256, "OF_REDIS");
_Static_assert((TRAIT_RUNNER_STOPPED | TRAIT_SUSPENDED) == 1536, "OF_SUSPEND");
_Static_assert((TRAIT_SPARES_RESCUES | TRAIT_SPARES_WAITS) == 6, "OF_SLOW_COMMIT");

static const char idle_history[] =
    "{'t':100000000000,'p':'w.5','op':'serves','ph':'inv','generation':1}\n"
    "{'t':100000000001,'p':'w.5','op':'serves','ph':'ok','queue':'q'}\n"
    "{'t':100000000002,'p':'w.5','op':'serves','ph':'ok','queue':'q2'}\n"
    "{'t':100000000003,'p':'w.5','op':'serves','ph':'ok','queue':'slow'}\n"
    "{'t':100000000003,'p':'w.5','op':'serves','ph':'ok','queue':'wide'}\n"
    "{'t':100000000004,'p':'w.5','op':'serves','ph':'ok','kind':'x'}\n"
    "{'t':105000000000,'p':'w.5','op':'spare','ph':'ok','n':1}\n"
    "{'t':117000000000,'p':'w.6','op':'run','ph':'inv','job':5,'f':51,'att':1,'once':0}\n"
    "{'t':117000000001,'p':'w.5','op':'spare','ph':'ok','n':0}\n"
    "{'t':118000000000,'p':'w.5','op':'stop','ph':'ok','code':0}\n";
static const char idle_final[] = "{'job':5,'kind':'x','state':'completed','fence':51,'attempt':1,"
                                 "'max_attempts':2}\n";

static char folder[96];

static void setup(void)
{
    (void)snprintf(folder, sizeof folder, "%s/check-XXXXXX", suite_tmp());
    ck_assert_ptr_nonnull(mkdtemp(folder));
    static const char *const parts[] = {"history", "ledger", "logs"};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        char path[160];
        (void)snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
}

static void put(enum file file, const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file_names[file]);
    FILE *out = fopen(path, "ae");
    ck_assert_ptr_nonnull(out);
    for (const char *p = text; *p != '\0'; p++) {
        (void)fputc(*p == '\'' ? '"' : *p, out);
    }
    ck_assert_int_eq(fclose(out), 0);
}

/* Writes all files, with the change. */
static void put_run(const struct planted *p)
{
    for (enum file f = 0; f < FILE_COUNT; f++) {
        const char *text = clean[f];
        if (f != p->file || p->old == NULL) {
            put(f, text);
            continue;
        }
        const char *at = strstr(text, p->old);
        ck_assert_msg(at != NULL, "%s: there is no '%s'", p->what, p->old);
        char *head = strndup(text, (size_t)(at - text));
        put(f, head);
        free(head);
        put(f, p->new);
        put(f, at + strlen(p->old));
    }
    if (p->old == NULL) {
        put(p->file, p->new);
    }
    for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
        if (strcmp(p->what, more[i].name) == 0) {
            put(more[i].file, more[i].text);
        }
    }
    if (strstr(p->new, "'job':21,'old_state'") != NULL) {
        put(FINAL, TIED_FINAL("20") TIED_FINAL("21"));
    }
    if (strstr(p->new, "'job':5,'n'") != NULL) {
        put(HISTORY, idle_history);
        put(FINAL, idle_final);
    }
    if (strstr(p->new, "'job':6,'n'") != NULL) {
        put(HISTORY, "{'t':109000000000,'p':'w.6','op':'run','ph':'inv','job':6,'f':48,'att':1}\n");
        put(FINAL, "{'job':6,'kind':'x','state':'completed','fence':48,'attempt':1}\n");
    }
    bool is_leak = strcmp(p->what, "descriptors that leak") == 0;
    bool is_flat = strcmp(p->what, "descriptors that don't") == 0;
    bool is_lost = strcmp(p->what, "descriptors of connections that are lost for a while") == 0;
    for (int i = 0; (is_leak || is_flat || is_lost) && i < 100; i++) {
        char line[128];
        (void)snprintf(line, sizeof line,
                       "{'t':%d000000000,'p':'w1','rss':1000000,'fds':%d,'children':2}\n", i + 1,
                       is_leak                       ? 10 + i
                       : is_lost && i > 30 && i < 60 ? 20
                       : is_lost                     ? 38
                                                     : 10 + i % 7);
        put(SAMPLES, line);
    }
}

/* Runs the checker; returns its exit code. */
static int judge(char *ret_output)
{
    char program[512];
    int ends[2];
    (void)snprintf(program, sizeof program, "%s/claimd-chaos-check", getenv("CLAIMD_BIN_DIR"));
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)execl(program, program, folder, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    size_t len = 0;
    ssize_t n = 0;
    while ((n = read(ends[0], ret_output + len, OUTPUT_MAX - 1 - len)) > 0) {
        len += (size_t)n;
    }
    ret_output[len] = '\0';
    (void)close(ends[0]);
    int how = 0;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static void sweep(void)
{
    static const char *const parts[] = {"violations.jsonl", "history", "ledger", "logs", ""};
    char path[160];
    for (enum file f = 0; f < FILE_COUNT; f++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, file_names[f]);
        (void)unlink(path);
    }
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
        (void)remove(path);
    }
}

START_TEST(each_planted_violation_is_reported_by_the_checker_that_is_named_for_it)
{
    const struct planted *p = &planted[_i];
    static char output[OUTPUT_MAX];
    put_run(p);
    int code = judge(output);
    const char *last = strstr(output, "check: ");
    ck_assert_msg(last != NULL && code == (p->expected != NULL), "%s: exit code %d\n%.3000s",
                  p->what, code, output);
    bool is_reported = p->expected == NULL || strstr(last, p->expected) != NULL;
    ck_assert_msg(is_reported, "%s: expected %s\n%.3000s", p->what, p->expected, output);
    sweep();
}
END_TEST

START_TEST(a_violation_comes_with_the_timeline_of_its_job_from_all_sources)
{
    static char output[OUTPUT_MAX];
    put_run(&(struct planted){.what = "effect",
                              .file = LEDGER,
                              .new = "{'t':14004300000,'job':2,'fence':12,'op':'effect'}\n"});
    ck_assert_int_eq(judge(output), 1);
    static const char what[] = "VIOLATION K3 S4 job 2: two effects under fence 12";
    const char *const parts[] = {what, " acked ", " history ", " ledger ", " row ", " final "};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        ck_assert_msg(strstr(output, parts[i]) != NULL, "no '%s' in\n%s", parts[i], output);
    }
    sweep();
}
END_TEST

START_TEST(a_line_that_is_cut_is_read_over_at_the_end_only)
{
    static char output[OUTPUT_MAX];
    put_run(&(struct planted){.what = "cut", .file = HISTORY, .new = "{'t':1800"});
    ck_assert_msg(judge(output) == 0, "%s", output);
    put(HISTORY, "\n{'t':1900}\n");
    ck_assert_msg(judge(output) == 2, "%s", output);
    ck_assert_ptr_nonnull(strstr(output, "no JSON object"));
    sweep();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chaos_check");
    TCase *tcase = tcase_create("check");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase,
                        each_planted_violation_is_reported_by_the_checker_that_is_named_for_it, 0,
                        ARRAY_COUNT(planted));
    tcase_add_test(tcase, a_violation_comes_with_the_timeline_of_its_job_from_all_sources);
    tcase_add_test(tcase, a_line_that_is_cut_is_read_over_at_the_end_only);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
