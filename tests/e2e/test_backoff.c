/* SPDX-License-Identifier: Apache-2.0
 *
 * Redis answers, but refuses: daemons wait before they ask again, and continue when they are
 * permitted. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define LOOK_US (5 * US_PER_S)
#define SHARE_MAX 10 /* percent of one CPU */
#define LINES_MAX 50 /* log lines about trouble in LOOK_US */
#define JOBS 50
#define MASTERS 5

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = MASTERS});
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
    (void)fleet_enqueue(&f, "noop", "{}", JOBS);
    fleet_wait_finished(&f, JOBS, "completed", SOON_US);
}

static void teardown(void)
{
    fleet_stop(&f);
}

static void everywhere(const char *command)
{
    for (size_t i = 0; i < MASTERS; i++) {
        fleet_redis(&f, i, command);
    }
}

/* ---- what Redis may refuse, and the repair ---- */

static void break_type(void)
{
    everywhere("SET claimd:hints:default junk");
}

static void mend_type(void)
{
    everywhere("DEL claimd:hints:default");
}

static void break_lock_type(void)
{
    everywhere("DEL claimd:leader");
    everywhere("LPUSH claimd:leader junk");
}

static void mend_lock_type(void)
{
    everywhere("DEL claimd:leader");
}

static void break_memory(void)
{
    everywhere("CONFIG SET maxmemory 1");
}

static void mend_memory(void)
{
    everywhere("CONFIG SET maxmemory 0");
}

static void break_password(void)
{
    everywhere("CONFIG SET requirepass another");
    ck_assert_int_eq(setenv("REDISCLI_AUTH", "another", 1), 0);
    everywhere("CLIENT KILL TYPE normal");
}

static void mend_password(void)
{
    everywhere("ACL SETUSER default nopass");
}

static void break_rights(void)
{
    everywhere("ACL SETUSER default -zadd -bzmpop -evalsha -set");
}

static void mend_rights(void)
{
    everywhere("ACL SETUSER default +@all");
}

static const struct {
    const char *name;
    void (*begin)(void);
    void (*end)(void);
} refusals[] = {{"a hint set of another type", break_type, mend_type},
                {"the leader's lock of another type", break_lock_type, mend_lock_type},
                {"no memory", break_memory, mend_memory},
                {"another password", break_password, mend_password},
                {"no rights", break_rights, mend_rights}};

/* ---- the consumption of a process in the meantime ---- */

static int64_t cpu_us(pid_t pid)
{
    char path[64];
    char line[1024] = "";
    unsigned long user = 0;
    unsigned long system = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    (void)fclose(file);
    const char *rest = strrchr(line, ')');
    ck_assert_ptr_nonnull(rest);
    ck_assert_int_eq(
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
    return (int64_t)(user + system) * US_PER_S / sysconf(_SC_CLK_TCK);
}

struct activity {
    int64_t cpu_us;
    int lines;
};

static struct activity activity(pid_t pid, const char *program)
{
    return (struct activity){.cpu_us = cpu_us(pid),
                             .lines = fleet_log_count(&f, program, 0, "") -
                                      fleet_log_count(&f, program, 0, "event=job_")};
}

static void expect_calm(const char *when, const char *program, const struct activity *before,
                        const struct activity *after)
{
    int64_t share = (after->cpu_us - before->cpu_us) * 100 / LOOK_US;
    ck_assert_msg(share <= SHARE_MAX, "%s: %s takes %lld %% of a CPU", when, program,
                  (long long)share);
    int lines = after->lines - before->lines;
    ck_assert_msg(lines <= LINES_MAX, "%s: %s logs %d lines", when, program, lines);
}

START_TEST(who_is_refused_by_redis_is_calm_until_it_may_go_on)
{
    static const char scheduler[] = "claimd-scheduler";
    static const char worker[] = "claimd-worker";
    const char *name = refusals[_i].name;
    refusals[_i].begin();
    (void)fleet_enqueue(&f, "noop", "{}", JOBS);
    struct activity s = activity(f.schedulers[0], scheduler);
    struct activity w = activity(f.workers[0], worker);
    int64_t end_us = clock_boot_us() + LOOK_US;
    (void)WAIT_UNTIL(clock_boot_us() >= end_us, 2 * LOOK_US);
    struct activity s_now = activity(f.schedulers[0], scheduler);
    struct activity w_now = activity(f.workers[0], worker);
    expect_calm(name, scheduler, &s, &s_now);
    expect_calm(name, worker, &w, &w_now);
    refusals[_i].end();
    fleet_wait_finished(&f, 2 * JOBS, "completed", SOON_US);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("backoff");
    TCase *t = tcase_create("backoff");
    tcase_set_timeout(t, 120);
    tcase_add_unchecked_fixture(t, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, who_is_refused_by_redis_is_calm_until_it_may_go_on, 0,
                        (int)ARRAY_COUNT(refusals));
    suite_add_tcase(s, t);
    return suite_run(s);
}
