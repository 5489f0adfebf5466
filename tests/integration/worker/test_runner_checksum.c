/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped checksum plugin, in a real runner. */
#include "base/clock.h"
#include "cluster/servers.h"
#include "runner_harness.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

#define MD5_ABC "900150983cd24fb0d6963f7d28e17f72"
#define SHA256_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static struct harness h;
static char dir[SERVER_PATH_MAX];
static char path[SERVER_PATH_MAX + 16];

static void setup(void)
{
    struct err err = {0};
    ck_assert_msg(dir_make(dir, sizeof dir, &err) == STATUS_OK, "%s", err.msg);
    (void)snprintf(path, sizeof path, "%s/abc", dir);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    size_t len = 0;
    harness_start(&h, harness_plugins());
    (void)harness_hello(&h, &len);
}

static void teardown(void)
{
    harness_stop(&h);
    dir_remove(dir);
}

/* Runs checksum on `file` and returns the verdict; the caller frees it. */
static char *verdict_of(const char *file, const char *algorithm, const char *hex)
{
    json_t *args = json_pack("{s:s, s:s}", "path", file, algorithm, hex);
    char *text = json_dumps(args, 0);
    json_decref(args);
    struct result_frame r;
    harness_run(&h, "checksum", text, &r);
    free(text);
    ck_assert_msg(r.outcome == CLAIMD_DONE, "%.*s", (int)r.error_len, r.error);
    json_t *result = json_loadb(r.result, r.result_len, 0, NULL);
    char *verdict = strdup(json_string_value(json_object_get(result, "verdict")));
    json_decref(result);
    return verdict;
}

START_TEST(match_mismatch_and_missing_are_results)
{
    char missing[SERVER_PATH_MAX + 32];
    (void)snprintf(missing, sizeof missing, "%s/../nothing-here", path);
    const struct {
        const char *file;
        const char *algorithm;
        const char *hex;
        const char *verdict;
    } cases[] = {
        {path, "md5", MD5_ABC, "match"},
        {path, "md5", "900150983CD24FB0D6963F7D28E17F72", "match"},
        {path, "sha256", SHA256_ABC, "match"},
        {path, "md5", "00000000000000000000000000000000", "mismatch"},
        {missing, "md5", MD5_ABC, "missing"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char *verdict = verdict_of(cases[i].file, cases[i].algorithm, cases[i].hex);
        ck_assert_str_eq(verdict, cases[i].verdict);
        free(verdict);
    }
}
END_TEST

START_TEST(bad_args_and_what_is_no_file_fail_for_good)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{}",
        "not json",
        "{\"path\": \"/etc/passwd\"}",
        "{\"path\": \"etc/passwd\", \"md5\": \"" MD5_ABC "\"}",
        "{\"path\": \"/etc/passwd\", \"md5\": \"abc\"}",
        "{\"path\": \"/etc/passwd\", \"md5\": 7}",
        "{\"path\": \"/etc/passwd\", \"sha256\": \"" MD5_ABC "\"}",
        "{\"path\": \"/etc/passwd\", \"md5\": \"" MD5_ABC "\", \"more\": 1}",
        "{\"path\": \"/etc\", \"md5\": \"" MD5_ABC "\"}",
        "{\"path\": \"/dev/zero\", \"md5\": \"" MD5_ABC "\"}",
    };
    struct result_frame r;
    harness_run(&h, "checksum", cases[_i], &r);
    ck_assert_int_eq(r.outcome, CLAIMD_FAIL);
    ck_assert_uint_gt(r.error_len, 0);
}
END_TEST

START_TEST(a_fifo_does_not_block)
{
    char fifo[SERVER_PATH_MAX + 16];
    char args[SERVER_PATH_MAX + 128];
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", dir);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"md5\": \"" MD5_ABC "\"}", fifo);
    ck_assert_int_eq(mkfifo(fifo, 0644), 0);
    struct result_frame r;
    harness_run(&h, "checksum", args, &r);
    ck_assert_int_eq(r.outcome, CLAIMD_FAIL);
}
END_TEST

START_TEST(a_large_file_is_left_when_told_to_stop)
{
    char args[SERVER_PATH_MAX + 128];
    ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0); /* sparse: an hour of reading */
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"md5\": \"" MD5_ABC "\"}", path);
    harness_send(&h, "checksum", args);
    ck_assert(WAIT_UNTIL(atomic_load(&h.page->started_nonce) != 0, 5 * US_PER_S));
    int64_t told_us = clock_boot_us();
    atomic_store(&h.page->should_stop, 1);
    struct result_frame r;
    harness_result(&h, &r);
    ck_assert_int_eq(r.outcome, CLAIMD_RETRY);
    ck_assert_int_lt(clock_boot_us() - told_us, 5 * US_PER_S);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checksum");
    TCase *tc = tcase_create("checksum");
    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, match_mismatch_and_missing_are_results);
    tcase_add_loop_test(tc, bad_args_and_what_is_no_file_fail_for_good, 0, 12);
    tcase_add_test(tc, a_fifo_does_not_block);
    tcase_add_test(tc, a_large_file_is_left_when_told_to_stop);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
