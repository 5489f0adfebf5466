/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/recorder.h"
#include "cluster/child.h"
#include "cluster/servers.h"
#include "support/suite.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static char all[SERVER_PATH_MAX]; /* removed by the parent: a signal ends one of the tests */
static char folder[SERVER_PATH_MAX + 16];

static void make_all(void)
{
    ck_assert_int_eq(dir_make(all, sizeof all, NULL), STATUS_OK);
}

static void remove_all(void)
{
    dir_remove(all);
}

static void setup(void)
{
    (void)snprintf(folder, sizeof folder, "%s/XXXXXX", all);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(setenv("CLAIMD_HISTORY", folder, 1), 0);
}

/* Returns the lines of the only file in the folder, as JSON, and removes the file. */
static json_t *recorded(void)
{
    char path[SERVER_PATH_MAX + 300] = "";
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    json_t *lines = json_array();
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) { // NOLINT
        if (e->d_name[0] != '.') {
            ck_assert_str_eq(path, ""); /* one file per process */
            (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        }
    }
    (void)closedir(dir);
    FILE *file = path[0] == '\0' ? NULL : fopen(path, "r");
    char line[4096];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        json_error_t error;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        ck_assert_msg(object != NULL, "%s: %s", error.text, line);
        (void)json_array_append_new(lines, object);
    }
    if (file != NULL) {
        (void)fclose(file);
        (void)unlink(path);
    }
    return lines;
}

static const char *text(const json_t *lines, size_t n, const char *name)
{
    const char *value = json_string_value(json_object_get(json_array_get(lines, n), name));
    ck_assert_msg(value != NULL, "line %zu has no %s", n, name);
    return value;
}

static int64_t number(const json_t *lines, size_t n, const char *name)
{
    const json_t *value = json_object_get(json_array_get(lines, n), name);
    ck_assert_msg(json_is_integer(value), "line %zu has no %s", n, name);
    return json_integer_value(value);
}

START_TEST(without_the_variable_nothing_is_recorded)
{
    struct err err = {0};
    ck_assert_int_eq(unsetenv("CLAIMD_HISTORY"), 0);
    ck_assert_int_eq(recorder_open("worker", &err), STATUS_OK);
    ck_assert(!recorder_is_on());
    record("claim", "inv", RECORD_I64("job", 1));
    json_t *lines = recorded();
    ck_assert_uint_eq(json_array_size(lines), 0);
    json_decref(lines);
}
END_TEST

START_TEST(each_event_is_one_line_of_json_with_its_time_and_process)
{
    struct err err = {0};
    char process[32];
    (void)snprintf(process, sizeof process, "worker.%d", (int)getpid());
    int64_t before_ns = clock_boot_us() * 1000;
    ck_assert_msg(recorder_open("worker", &err) == STATUS_OK, "%s", err.msg);
    record("lock", "ok", RECORD_I64("job", INT64_MAX), RECORD_TEXT("val", "a\"b\\c\n\xff"),
           RECORD_JSON("votes", "[1,0,2]"), RECORD_BYTES("key", "job:7 and more", 5));
    json_t *lines = recorded();
    ck_assert_uint_eq(json_array_size(lines), 2);
    ck_assert_str_eq(text(lines, 0, "op"), "start");
    ck_assert_str_eq(text(lines, 1, "op"), "lock");
    ck_assert_str_eq(text(lines, 1, "ph"), "ok");
    ck_assert_str_eq(text(lines, 1, "p"), process);
    ck_assert_str_eq(text(lines, 1, "val"), "a\"b\\c\n\u00ff");
    ck_assert_str_eq(text(lines, 1, "key"), "job:7");
    ck_assert_int_eq(number(lines, 1, "job"), INT64_MAX);
    ck_assert_uint_eq(json_array_size(json_object_get(json_array_get(lines, 1), "votes")), 3);
    ck_assert_int_ge(number(lines, 0, "t"), before_ns);
    ck_assert_int_ge(number(lines, 1, "t"), number(lines, 0, "t"));
    json_decref(lines);
}
END_TEST

START_TEST(too_long_a_value_is_cut_and_the_line_stays_json)
{
    struct err err = {0};
    char longest[8192];
    memset(longest, '\1', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ck_assert_int_eq(recorder_open("worker", &err), STATUS_OK);
    record("a", "ok", RECORD_TEXT("x", longest), RECORD_TEXT("y", longest),
           RECORD_TEXT("z", longest));
    json_t *lines = recorded();
    ck_assert_uint_eq(strlen(text(lines, 1, "z")), 128);
    json_decref(lines);
}
END_TEST

START_TEST(what_was_recorded_survives_a_kill)
{
    pid_t child = fork();
    if (child == 0) {
        struct err err = {0};
        if (recorder_open("worker", &err) == STATUS_OK) {
            record("claim", "inv", RECORD_I64("job", 42));
            (void)kill(getpid(), SIGKILL);
        }
        _exit(1);
    }
    int how = 0;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFSIGNALED(how));
    json_t *lines = recorded();
    ck_assert_uint_eq(json_array_size(lines), 2);
    ck_assert_int_eq(number(lines, 1, "job"), 42);
    json_decref(lines);
}
END_TEST

START_TEST(what_is_no_folder_is_refused_by_name)
{
    struct err err = {0};
    ck_assert_int_eq(setenv("CLAIMD_HISTORY", "/dev/null/x", 1), 0);
    ck_assert_int_eq(recorder_open("worker", &err), STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "CLAIMD_HISTORY '/dev/null/x': must be a folder"));
    ck_assert(!recorder_is_on());
}
END_TEST

START_TEST(a_history_with_a_hole_does_not_go_on)
{
    struct err err = {0};
    ck_assert_int_eq(recorder_open("worker", &err), STATUS_OK);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(full, 0);
    for (int fd = 3; fd < full; fd++) { /* one of them is its file */
        (void)dup2(full, fd);
    }
    record("claim", "inv", RECORD_I64("job", 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base_recorder");
    TCase *tcase = tcase_create("history");
    tcase_add_unchecked_fixture(tcase, make_all, remove_all);
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, without_the_variable_nothing_is_recorded);
    tcase_add_test(tcase, each_event_is_one_line_of_json_with_its_time_and_process);
    tcase_add_test(tcase, too_long_a_value_is_cut_and_the_line_stays_json);
    tcase_add_test(tcase, what_was_recorded_survives_a_kill);
    tcase_add_test(tcase, what_is_no_folder_is_refused_by_name);
    tcase_add_test_raise_signal(tcase, a_history_with_a_hole_does_not_go_on, SIGABRT);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
