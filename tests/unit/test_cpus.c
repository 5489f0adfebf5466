/* SPDX-License-Identifier: Apache-2.0
 *
 * How many CPUs a worker may use, with /proc and /sys trees made by the test. */
#include "cluster/servers.h"
#include "support/suite.h"
#include "worker/slots/cpus.h"

#include <check.h>
#include <stdio.h>
#include <sys/stat.h>

#define CORES 8

static char root[SERVER_PATH_MAX];

static void setup(void)
{
    struct err err = {0};
    ck_assert_msg(dir_make(root, sizeof root, &err) == STATUS_OK, "%s", err.msg);
}

static void teardown(void)
{
    dir_remove(root);
}

/* Writes a file below the root, with all folders on its path. */
static void given(const char *name, const char *text)
{
    char path[2 * SERVER_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(path, 0755);
        *p = '/';
    }
    FILE *f = fopen(path, "we");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void given_v1(const char *folder, const char *quota)
{
    char name[SERVER_PATH_MAX];
    (void)snprintf(name, sizeof name, "%s/cpu.cfs_quota_us", folder);
    given(name, quota);
    (void)snprintf(name, sizeof name, "%s/cpu.cfs_period_us", folder);
    given(name, "100000\n");
}

START_TEST(without_cgroups_all_cores_count)
{
    ck_assert_uint_eq(cpus_allowed(root, CORES), CORES);
    ck_assert_uint_eq(cpus_allowed(root, 0), 1);
}
END_TEST

static const struct {
    const char *cpu_max;
    size_t cpus;
} limits[] = {
    {"50000 100000\n", 1},              /* docker run --cpus 0.5 */
    {"100000 100000\n", 1},             /* 1 */
    {"150000 100000\n", 2},             /* 1.5 */
    {"1600000 100000\n", CORES},        /* more than the machine has */
    {"max 100000\n", CORES},            /* no limit */
    {"1000 1000000\n", 1},              /* almost nothing */
    {"9223372036854775807 1\n", CORES}, /* the largest number */
    {"50000\n", CORES},
    {"", CORES}, /* text that no kernel writes sets no limit */
    {"0 0\n", CORES},
    {"-1 100000", CORES} /* … */
};

START_TEST(a_v2_limit_is_rounded_up)
{
    given("proc/self/cgroup", "0::/\n");
    given("sys/fs/cgroup/cpu.max", limits[_i].cpu_max);
    ck_assert_uint_eq(cpus_allowed(root, CORES), limits[_i].cpus);
}
END_TEST

START_TEST(the_least_limit_on_the_way_up_counts)
{
    given("proc/self/cgroup", "0::/system.slice/claimd-worker.service\n");
    given("sys/fs/cgroup/system.slice/cpu.max", "200000 100000\n");
    given("sys/fs/cgroup/system.slice/claimd-worker.service/cpu.max", "max 100000\n");
    ck_assert_uint_eq(cpus_allowed(root, CORES), 2);
    given("sys/fs/cgroup/system.slice/claimd-worker.service/cpu.max", "50000 100000\n");
    ck_assert_uint_eq(cpus_allowed(root, CORES), 1);
}
END_TEST

START_TEST(a_v1_limit_counts_where_the_cpu_controller_is)
{
    given("proc/self/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:/docker/abc\n0::/\n");
    given_v1("sys/fs/cgroup/cpu/docker/abc", "250000\n");
    given_v1("sys/fs/cgroup/cpu/other", "100000\n");
    ck_assert_uint_eq(cpus_allowed(root, CORES), 3);
    given_v1("sys/fs/cgroup/cpu/docker/abc", "-1\n");
    ck_assert_uint_eq(cpus_allowed(root, CORES), CORES);
}
END_TEST

/* Docker with v1: the path is the host's, and the top of the tree belongs to the container. */
START_TEST(a_container_that_sees_its_own_cgroup_as_the_top_is_limited_by_it)
{
    given("proc/self/cgroup", "4:cpuacct,cpu:/docker/abc\n");
    given_v1("sys/fs/cgroup/cpu", "50000\n");
    ck_assert_uint_eq(cpus_allowed(root, CORES), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpus");
    TCase *c = tcase_create("cgroups");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, without_cgroups_all_cores_count);
    tcase_add_loop_test(c, a_v2_limit_is_rounded_up, 0, (int)ARRAY_COUNT(limits));
    tcase_add_test(c, the_least_limit_on_the_way_up_counts);
    tcase_add_test(c, a_v1_limit_counts_where_the_cpu_controller_is);
    tcase_add_test(c, a_container_that_sees_its_own_cgroup_as_the_top_is_limited_by_it);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
