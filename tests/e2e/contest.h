/* SPDX-License-Identifier: Apache-2.0
 *
 * Several processes compete for one lock, again and again, until the time is over. The holder is
 * alone in a critical section. Contenders are programs in tests/interop, each with a lock library
 * of its own:
 *
 *    PROGRAM DIRECTORY NAME SECONDS TTL_MS SOCKET…
 *
 * In the section, a contender appends "enter PID NOW DEADLINE VALUE" to DIRECTORY/NAME.log, makes
 * DIRECTORY/inside with O_EXCL (the file holds its deadline; a file whose deadline has passed is
 * taken over, any other one is logged as a "violation"), increments the number in DIRECTORY/counter
 * to VALUE, removes the file, and appends "leave PID NOW DEADLINE VALUE". Times are CLOCK_BOOTTIME
 * in microseconds. The logs are checked afterwards. */
#ifndef CLAIMD_TESTS_CONTEST_H
#define CLAIMD_TESTS_CONTEST_H

#include "base/clock.h"
#include "base/rand.h"
#include "cluster/servers.h"

#include <signal.h>

#define CONTEST_MASTERS 5
#define CONTEST_CONTENDERS_MAX 6
#define CONTEST_TTL_MS 1000

struct contender {
    const char *program; /* path of the program */
    char name[16];
    pid_t pid;
    size_t kills;
};

struct contest {
    char dir[SERVER_PATH_MAX];
    struct redis_server servers[CONTEST_MASTERS];
    struct contender contenders[CONTEST_CONTENDERS_MAX];
    size_t count;
    int64_t end_us;
    struct rand rand;
};

struct contest_result {
    size_t sections[CONTEST_CONTENDERS_MAX]; /* per contender: entered and left in time */
    size_t all_sections;
    size_t cut_short;  /* entered, then killed inside */
    size_t late;       /* left after the deadline: the machine was busy for longer than the lease */
    size_t violations; /* reported by contenders */
    size_t overlaps;   /* computed from the times */
    size_t repeated;   /* the same VALUE from two that left in time */
    int64_t counter;
};

/* Starts the servers and the clock; prints the seed ($SEED, or a new one). */
void contest_start(struct contest *c, int64_t seconds);
void contest_add(struct contest *c, const char *program, const char *name);
void contest_kill(struct contest *c, size_t contender); /* sends SIGKILL, and starts it again */
bool contest_is_over(const struct contest *c);
/* Waits for that long, at most until the end. */
void contest_pause(const struct contest *c, int64_t us);
/* Waits for the contenders, stops everything, and checks that there is no overlap and no violation,
 * and that the counter is exact. Prints the sections of each contender. */
void contest_end(struct contest *c, struct contest_result *ret);

/* Returns the seconds of a contest: `seconds`, or `soak` in the long form (CLAIMD_SOAK is set). */
int64_t contest_seconds(int64_t seconds, int64_t soak);

#endif
