/* SPDX-License-Identifier: Apache-2.0
 *
 * The `redlock` program on private masters. Its commands write files into the world's directory,
 * their $DIR, which show what they do. */
#ifndef CLAIMD_TESTS_REDLOCK_CMD_WORLD_H
#define CLAIMD_TESTS_REDLOCK_CMD_WORLD_H

#include "base/buf.h"
#include "base/clock.h"
#include "cluster/servers.h"
#include "support/lock_node.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define MASTERS 5
#define LIMIT_US (120 * US_PER_S)

struct cmd_world {
    char dir[SERVER_PATH_MAX];
    char program[SERVER_PATH_MAX];
    char nodes[16 + 8 + MASTERS * 128]; /* REDLOCK_NODES=… */
    char dir_env[SERVER_PATH_MAX + 8];
    struct redis_server servers[MASTERS];
    struct buf out; /* output of the last one that was run to its end */
};
extern struct cmd_world world;

/* Runs `redlock WORDS…` to its end; returns its exit code. */
int world_run(const char *const *words);
#define redlock(...) world_run((const char *const[]){__VA_ARGS__, NULL})
bool world_said(const char *part);

/* Starts it; its stderr goes to the file `log` of the directory. */
pid_t world_start(const char *log, const char *const *words);
#define start(log, ...) world_start((log), (const char *const[]){__VA_ARGS__, NULL})
int world_wait(pid_t pid); /* returns its exit code */

/* Functions for files of the directory. */
const char *world_path(const char *file); /* valid until the next four calls */
bool world_has(const char *file, const char *part);
#define ck_wait_file(file, part) \
    ck_assert_msg(WAIT_UNTIL(world_has((file), (part)), LIMIT_US), "no '%s' in %s", (part), (file))
pid_t world_pid(const char *file); /* waits for the file; returns the number in it */
bool world_runs(pid_t pid);

void world_signal_masters(size_t first, size_t count, int number);

/* The main() of a test program. `config`: further lines of redis.conf. */
int world_main(const char *name, const char *config, void (*add_tests)(TCase *t));

#endif
