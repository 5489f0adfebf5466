/* SPDX-License-Identifier: Apache-2.0
 *
 * What these programs share, so that each of them shows its point alone. Each takes the addresses
 * of Redis masters as its arguments: "host:port" or "unix:/path". What fails here ends the
 * program with one line. */
#ifndef EXAMPLES_LOCKS_COMMON_H
#define EXAMPLES_LOCKS_COMMON_H

#include <hiredis/hiredis.h>
#include <redlock_status.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The arguments without the program's name, NULL at the end; output goes out line by line. */
char **node_urls(int argc, char **argv);

/* One connection of hiredis, for the locks that are made by hand. */
redisContext *connect_to(const char *url);
/* Runs a command and makes a number of its reply: OK = 1, nil = 0, text as the number it says. */
long long run(redisContext *redis, const char *format, ...);

/* A client of the lock library for all these masters: a host of its own, as they see it. */
struct redlock_client *open_client(char **urls);
/* redlock_acquire() that must win. */
struct redlock_lock *acquire(struct redlock_client *client, const struct redlock_request *request);

void work_ms(int64_t ms); /* sleeps */
int64_t now_us(void);
void fail(const char *what, const char *why) __attribute__((noreturn));

#endif
