/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock_cmd_world.h"

#include "support/suite.h"

#include <fcntl.h>
#include <stdlib.h>

#define WORDS_MAX 24
#define FILE_BYTES_MAX 8192

struct cmd_world world;

static const char *redis_config;

static void fill_argv(const char **argv, const char *const *words)
{
    argv[0] = world.program;
    size_t n = 1;
    for (; words[n - 1] != NULL; n++) {
        ck_assert_uint_lt(n, WORDS_MAX);
        argv[n] = words[n - 1];
    }
    argv[n] = NULL;
}

int world_run(const char *const *words)
{
    struct err err = {0};
    const char *argv[WORDS_MAX + 1];
    const char *const env[] = {world.nodes, world.dir_env, NULL};
    int code = -1;
    fill_argv(argv, words);
    buf_reset(&world.out);
    enum status st = program_run(argv, env, LIMIT_US, &world.out, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    return code;
}

bool world_said(const char *part)
{
    return world.out.len > 0 && strstr(buf_at(&world.out), part) != NULL;
}

pid_t world_start(const char *log, const char *const *words)
{
    struct err err = {0};
    const char *argv[WORDS_MAX + 1];
    const char *const env[] = {world.nodes, world.dir_env, NULL};
    pid_t pid = 0;
    fill_argv(argv, words);
    enum status st = program_start(argv, env, world_path(log), &pid, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    return pid;
}

int world_wait(pid_t pid)
{
    struct err err = {0};
    int code = -1;
    enum status st = program_wait(pid, LIMIT_US, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    return code;
}

const char *world_path(const char *file)
{
    static char paths[4][SERVER_PATH_MAX + 64];
    static size_t at;
    char *path = paths[at++ % ARRAY_COUNT(paths)];
    (void)snprintf(path, sizeof paths[0], "%s/%s", world.dir, file);
    return path;
}

static bool read_file(const char *file, char text[FILE_BYTES_MAX])
{
    autoclose int fd = open(world_path(file), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, FILE_BYTES_MAX - 1);
    text[n < 0 ? 0 : n] = '\0';
    return n >= 0;
}

bool world_has(const char *file, const char *part)
{
    char text[FILE_BYTES_MAX];
    return read_file(file, text) && strstr(text, part) != NULL;
}

pid_t world_pid(const char *file)
{
    char text[FILE_BYTES_MAX];
    ck_wait_file(file, "\n");
    ck_assert(read_file(file, text));
    long pid = strtol(text, NULL, 10);
    ck_assert_int_gt(pid, 1);
    return (pid_t)pid;
}

/* True if the process runs, even if it is not our child; a zombie has ended. */
bool world_runs(pid_t pid)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0) {
        return false;
    }
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[2] != 'Z' && end[2] != 'X';
}

void world_signal_masters(size_t first, size_t count, int number)
{
    for (size_t i = first; i < first + count; i++) {
        ck_assert_int_eq(kill(world.servers[i].pid, number), 0);
    }
}

static void setup(void)
{
    struct err err = {0};
    const char *folder = getenv("CLAIMD_BIN_DIR");
    buf_init(&world.out, (size_t)1 << 20);
    (void)snprintf(world.program, sizeof world.program, "%s/redlock",
                   folder == NULL ? "bin" : folder);
    ck_assert_msg(dir_make(world.dir, sizeof world.dir, &err) == STATUS_OK, "%s", err.msg);
    (void)snprintf(world.dir_env, sizeof world.dir_env, "DIR=%s", world.dir);
    size_t at = (size_t)snprintf(world.nodes, sizeof world.nodes, "REDLOCK_NODES=");
    for (size_t i = 0; i < MASTERS; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "r%zu", i);
        ck_assert_msg(redis_server_start(world_path(name), redis_config, &world.servers[i], &err) ==
                          STATUS_OK,
                      "%s", err.msg);
        at += (size_t)snprintf(world.nodes + at, sizeof world.nodes - at, "%sunix:%s",
                               i == 0 ? "" : ",", world.servers[i].path);
    }
}

static void teardown(void)
{
    for (size_t i = 0; i < MASTERS; i++) {
        redis_server_stop(&world.servers[i]);
    }
    buf_release(&world.out);
    dir_remove(world.dir);
}

int world_main(const char *name, const char *config, void (*add_tests)(TCase *t))
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    redis_config = config;
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    add_tests(t);
    suite_add_tcase(s, t);
    return suite_run(s);
}
