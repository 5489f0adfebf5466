/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files a runner loads, and why it refuses the others: `claimd-runner --list` on directories
 * that each test makes. */
#include "cluster/servers.h"
#include "runner_harness.h"
#include "support/suite.h"

#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)4 << 20)

static char dir[SERVER_PATH_MAX];

static void setup(void)
{
    struct err err = {0};
    ck_assert_msg(dir_make(dir, sizeof dir, &err) == STATUS_OK, "%s", err.msg);
    ck_assert_int_eq(chmod(dir, 0755), 0);
}

static void teardown(void)
{
    dir_remove(dir);
}

static void path_in_dir(const char *name, char *ret_path)
{
    (void)snprintf(ret_path, HARNESS_PATH_MAX, "%s/%s", dir, name);
}

static void read_plugin(const char *from_dir, const char *name, struct buf *ret)
{
    char path[HARNESS_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", from_dir, name);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s is not built", path);
    buf_init(ret, FILE_MAX);
    struct stat s;
    ck_assert_int_eq(fstat(fd, &s), 0);
    ck_assert_int_eq(buf_reserve(ret, (size_t)s.st_size, NULL), STATUS_OK);
    ck_assert_int_eq(read(fd, buf_at(ret), (size_t)s.st_size), s.st_size);
    buf_grew(ret, (size_t)s.st_size);
}

static void write_file(const char *name, const char *bytes, size_t len)
{
    char path[HARNESS_PATH_MAX];
    path_in_dir(name, path);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
}

static void copy_plugin(const char *from_dir, const char *name, const char *as)
{
    struct buf b;
    read_plugin(from_dir, name, &b);
    write_file(as, buf_at(&b), b.len);
    buf_release(&b);
}

static void copy_noop(void)
{
    copy_plugin(harness_plugins(), "noop.so", "noop.so");
}

/* Returns the output of --list; the caller releases it. */
static json_t *list_trusting(const char *directory, const char *owners)
{
    struct buf out = BUF_INIT(1 << 20);
    const char *args[] = {"--list", "--plugins", directory, "--owners", owners, NULL};
    ck_assert_int_eq(harness_program(args, &out), 0);
    json_t *all = json_loadb(buf_at(&out), out.len, 0, NULL);
    ck_assert_msg(all != NULL, "no JSON: %s", buf_at(&out));
    buf_release(&out);
    return all;
}

static json_t *list(const char *directory)
{
    return list_trusting(directory, "");
}

static bool serves(const json_t *all, const char *name)
{
    size_t i = 0;
    json_t *kind = NULL;
    json_array_foreach(json_object_get(all, "kinds"), i, kind)
    {
        if (strcmp(json_string_value(json_object_get(kind, "name")), name) == 0) {
            return true;
        }
    }
    return false;
}

static void assert_refused(const json_t *all, const char *file, const char *reason)
{
    size_t i = 0;
    json_t *entry = NULL;
    json_array_foreach(json_object_get(all, "refused"), i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "file")), file) == 0) {
            const char *got = json_string_value(json_object_get(entry, "reason"));
            ck_assert_msg(strstr(got, reason) != NULL, "%s: '%s', expected '%s'", file, got,
                          reason);
            return;
        }
    }
    ck_abort_msg("%s was not refused", file);
}

/* The bad file is the only one refused, for this reason, and the good one beside it is served. */
static void assert_only_refusal(const char *file, const char *reason)
{
    json_t *all = list(dir);
    ck_assert_uint_eq(json_array_size(json_object_get(all, "refused")), 1);
    assert_refused(all, file, reason);
    ck_assert(serves(all, "noop"));
    json_decref(all);
}

START_TEST(G6_each_bad_plugin_is_refused_with_its_reason_and_the_others_run)
{
    static const struct {
        const char *file;
        const char *reason;
    } cases[] = {
        {"wrong_abi.so", "ABI 7, expected 1"},
        {"no_symbol.so", "no symbol claimd_plugin"},
        {"ctor_crash.so", "crashed while loading: SIGSEGV"},
        {"ctor_exit.so", "ended its process while loading, exit status 0"},
        {"ctor_hang.so", "not loaded after 5 s"},
        {"bad_kind_1.so", "kind 'Not-A-Name': must match ^[a-z][a-z0-9_]*$"},
        {"bad_kind_2.so", "kind late: timeout_ms -5, expected 0"},
        {"bad_kind_4.so", "init returned 3, expected 0"},
        {"bad_kind_5.so", "kind restless: backoff 'often': must be exponential:15s:1h, linear"},
    };
    char bad[HARNESS_PATH_MAX];
    harness_bad_plugins(bad);
    copy_noop();
    copy_plugin(bad, cases[_i].file, cases[_i].file);
    assert_only_refusal(cases[_i].file, cases[_i].reason);
}
END_TEST

START_TEST(G6_many_plugins_that_hang_are_named_and_hold_up_nobody_for_longer_than_one)
{
    char bad[HARNESS_PATH_MAX];
    char file[32];
    harness_bad_plugins(bad);
    copy_noop();
    for (int i = 0; i < 8; i++) {
        (void)snprintf(file, sizeof file, "hang_%d.so", i);
        copy_plugin(bad, "ctor_hang.so", file);
    }
    json_t *all = list(dir); /* which waits for at most 10 s */
    ck_assert_uint_eq(json_array_size(json_object_get(all, "refused")), 8);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(file, sizeof file, "hang_%d.so", i);
        assert_refused(all, file, "not loaded after 5 s");
    }
    ck_assert(serves(all, "noop"));
    json_decref(all);
}
END_TEST

START_TEST(G6_a_plugin_that_would_end_a_runner_is_listed_as_such)
{
    static const struct {
        const char *file;
        const char *reason;
    } cases[] = {{"ctor_abort_later.so", "a runner crashes when it loads it: SIGABRT"},
                 {"ctor_hang_later.so", "a runner hangs when it loads it"}};
    char bad[HARNESS_PATH_MAX];
    harness_bad_plugins(bad);
    copy_noop();
    copy_plugin(bad, cases[_i].file, cases[_i].file);
    assert_only_refusal(cases[_i].file, cases[_i].reason);
}
END_TEST

START_TEST(files_that_are_left_out_are_not_touched)
{
    char bad[HARNESS_PATH_MAX];
    struct buf out = BUF_INIT(1 << 20);
    harness_bad_plugins(bad);
    copy_noop();
    copy_plugin(bad, "ctor_crash.so", "crash.so");
    const char *args[] = {"--list", "--plugins", dir, "--without", "crash.so", NULL};
    ck_assert_int_eq(harness_program(args, &out), 0);
    json_t *all = json_loadb(buf_at(&out), out.len, 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(all, "refused")), 0);
    ck_assert(serves(all, "noop"));
    json_decref(all);
    buf_release(&out);
}
END_TEST

START_TEST(G6_a_truncated_plugin_is_refused_wherever_it_was_cut)
{
    struct buf whole;
    read_plugin(harness_plugins(), "sleep.so", &whole);
    copy_noop();
    for (size_t i = 0; i < 24; i++) {
        write_file("cut.so", buf_at(&whole), whole.len * i / 24);
        assert_only_refusal("cut.so", "truncated");
    }
    buf_release(&whole);
}
END_TEST

START_TEST(G6_a_plugin_of_another_machine_is_refused)
{
    struct buf b;
    read_plugin(harness_plugins(), "sleep.so", &b);
    copy_noop();
    char *bytes = buf_at(&b);
    bytes[offsetof(Elf64_Ehdr, e_machine)] ^= 1;
    write_file("other.so", bytes, b.len);
    assert_only_refusal("other.so", "built for ELF machine");
    bytes[EI_CLASS] ^= 3;
    write_file("other.so", bytes, b.len);
    assert_only_refusal("other.so", "ELF class");
    bytes[0] = 'x';
    write_file("other.so", bytes, b.len);
    assert_only_refusal("other.so", "not an ELF file");
    buf_release(&b);
}
END_TEST

START_TEST(a_plugin_of_the_first_header_of_this_abi_is_served_for_ever)
{
    copy_plugin(harness_test_plugins(), "first_abi.so", "first_abi.so");
    json_t *all = list(dir);
    ck_assert_uint_eq(json_array_size(json_object_get(all, "refused")), 0);
    ck_assert(serves(all, "first") && serves(all, "second"));
    json_decref(all);
}
END_TEST

START_TEST(a_kind_belongs_to_the_first_plugin_that_has_it)
{
    char bad[HARNESS_PATH_MAX];
    harness_bad_plugins(bad);
    copy_plugin(harness_test_plugins(), "misbehave.so", "a.so");
    copy_plugin(harness_test_plugins(), "misbehave.so", "b.so");
    copy_plugin(bad, "bad_kind_3.so", "c.so");
    json_t *all = list(dir);
    ck_assert(serves(all, "fail"));
    assert_refused(all, "b.so", "another file is plugin misbehave already");
    assert_refused(all, "c.so", "kind fail is served by plugin misbehave already");
    json_decref(all);
}
END_TEST

START_TEST(J5_a_symbolic_link_is_refused)
{
    char target[HARNESS_PATH_MAX];
    char path[HARNESS_PATH_MAX];
    (void)snprintf(target, sizeof target, "%s/sleep.so", harness_plugins());
    path_in_dir("link.so", path);
    copy_noop();
    ck_assert_int_eq(symlink(target, path), 0);
    assert_only_refusal("link.so", "a symbolic link");
}
END_TEST

START_TEST(J5_what_is_no_regular_file_is_refused)
{
    char path[HARNESS_PATH_MAX];
    copy_noop();
    path_in_dir("fifo.so", path);
    ck_assert_int_eq(mkfifo(path, 0644), 0);
    assert_only_refusal("fifo.so", "not a regular file");
}
END_TEST

START_TEST(J5_a_file_that_others_can_write_is_refused)
{
    char path[HARNESS_PATH_MAX];
    copy_noop();
    copy_plugin(harness_plugins(), "sleep.so", "open.so");
    path_in_dir("open.so", path);
    ck_assert_int_eq(chmod(path, _i == 0 ? 0664 : 0646), 0);
    assert_only_refusal("open.so", "writable by group or others");
}
END_TEST

START_TEST(J5_a_file_of_another_owner_is_refused)
{
    char path[HARNESS_PATH_MAX];
    copy_noop();
    if (geteuid() != 0) {
        return; /* only root can give files away */
    }
    copy_plugin(harness_plugins(), "sleep.so", "foreign.so");
    path_in_dir("foreign.so", path);
    ck_assert_int_eq(chown(path, 4242, 4242), 0);
    assert_only_refusal("foreign.so", "owned by user 4242");
}
END_TEST

/* A volume that a deployer's user fills; then even root is only trusted if it is named. */
START_TEST(J5_the_owners_that_are_trusted_can_be_named)
{
    char path[HARNESS_PATH_MAX];
    if (geteuid() != 0) {
        return; /* only root can give files away */
    }
    copy_noop();
    copy_plugin(harness_plugins(), "sleep.so", "foreign.so");
    path_in_dir("foreign.so", path);
    ck_assert_int_eq(chown(path, 4242, 4242), 0);
    ck_assert_int_eq(chown(dir, 4242, 4242), 0);
    json_t *all = list_trusting(dir, "77,4242");
    ck_assert(serves(all, "sleep"));
    assert_refused(all, "noop.so", "owned by user 0, expected 77 or 4242: chown it, or set");
    json_decref(all);
    all = list_trusting(dir, "0");
    assert_refused(all, dir, "owned by user 4242, expected 0: chown it, or set");
    json_decref(all);
}
END_TEST

START_TEST(J5_a_directory_that_others_can_write_serves_nothing)
{
    copy_noop();
    ck_assert_int_eq(chmod(dir, 0757), 0);
    json_t *all = list(dir);
    ck_assert(!serves(all, "noop"));
    assert_refused(all, dir, "writable by group or others");
    json_decref(all);
}
END_TEST

START_TEST(a_directory_that_is_missing_serves_nothing)
{
    char path[HARNESS_PATH_MAX];
    path_in_dir("nowhere", path);
    json_t *all = list(path);
    assert_refused(all, path, "No such file or directory");
    json_decref(all);
}
END_TEST

START_TEST(the_shipped_plugins_are_all_served)
{
    json_t *all = list(harness_plugins());
    ck_assert(serves(all, "noop") && serves(all, "sleep") && serves(all, "checksum"));
    ck_assert_uint_eq(json_array_size(json_object_get(all, "refused")), 0);
    json_decref(all);
}
END_TEST

START_TEST(bad_usage_exits_with_2)
{
    static const char *const cases[][5] = {{"--nonsense", NULL},
                                           {"--list", NULL},
                                           {"--plugins", "/", NULL},
                                           {"--parent", "x", "--plugins", "/", NULL},
                                           {"--list", "--plugins", "/", "more", NULL}};
    struct buf out = BUF_INIT(65536);
    ck_assert_int_eq(harness_program(cases[_i], &out), 2);
    ck_assert_uint_gt(out.len, 0);
    buf_release(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runner's plugins");
    TCase *tc = tcase_create("files");
    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, G6_each_bad_plugin_is_refused_with_its_reason_and_the_others_run, 0, 9);
    tcase_add_test(tc, G6_many_plugins_that_hang_are_named_and_hold_up_nobody_for_longer_than_one);
    tcase_add_loop_test(tc, G6_a_plugin_that_would_end_a_runner_is_listed_as_such, 0, 2);
    tcase_add_test(tc, files_that_are_left_out_are_not_touched);
    tcase_add_test(tc, G6_a_truncated_plugin_is_refused_wherever_it_was_cut);
    tcase_add_test(tc, G6_a_plugin_of_another_machine_is_refused);
    tcase_add_test(tc, a_plugin_of_the_first_header_of_this_abi_is_served_for_ever);
    tcase_add_test(tc, a_kind_belongs_to_the_first_plugin_that_has_it);
    tcase_add_test(tc, J5_a_symbolic_link_is_refused);
    tcase_add_test(tc, J5_what_is_no_regular_file_is_refused);
    tcase_add_loop_test(tc, J5_a_file_that_others_can_write_is_refused, 0, 2);
    tcase_add_test(tc, J5_a_file_of_another_owner_is_refused);
    tcase_add_test(tc, J5_the_owners_that_are_trusted_can_be_named);
    tcase_add_test(tc, J5_a_directory_that_others_can_write_serves_nothing);
    tcase_add_test(tc, a_directory_that_is_missing_serves_nothing);
    tcase_add_test(tc, the_shipped_plugins_are_all_served);
    tcase_add_loop_test(tc, bad_usage_exits_with_2, 0, 5);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
