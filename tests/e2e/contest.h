/* SPDX-License-Identifier: Apache-2.0
 *
 * Several processes want one lock, again and again, until the time is over; whoever has it is alone
 * in a section. Contenders are programs in tests/interop, each with a lock library of its own:
 *
 *     PROGRAM DIRECTORY NAME SECONDS TTL_MS SOCKET…
 *
 * In the section they append "enter PID NOW DEADLINE VALUE" to DIRECTORY/NAME.log, make
 * DIRECTORY/inside with O_EXCL (it holds the deadline of whoever made it; one whose deadline has
 * passed is taken over, any other is a "violation" in the log), raise the number in
 * DIRECTORY/counter to VALUE, remove what they made, and append "leave PID NOW DEADLINE VALUE".
 * Times are CLOCK_BOOTTIME in microseconds. The log is checked afterwards. */
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
    const char *program; /* its path */
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
    size_t sections[CONTEST_CONTENDERS_MAX]; /* of each: entered and left in time */
    size_t all_sections;
    size_t cut_short;  /* entered, and killed in it */
    size_t late;       /* left after the deadline: the machine was busy for longer than the lease */
    size_t violations; /* as the contenders saw it */
    size_t overlaps;   /* as the times say */
    size_t repeated;   /* the same VALUE by two that left in time */
    int64_t counter;
};

/* Servers, and the clock; prints the seed ($SEED, or a new one). */
void contest_start(struct contest *c, int64_t seconds);
void contest_add(struct contest *c, const char *program, const char *name);
void contest_kill(struct contest *c, size_t contender); /* -9, and starts it again */
bool contest_is_over(const struct contest *c);
void contest_pause(const struct contest *c, int64_t us); /* goes on, or until the end */
/* Waits for the contenders, stops everything, and checks: no overlap, no violation, a counter that
 * is exact. Prints the sections of each. */
void contest_end(struct contest *c, struct contest_result *ret);

/* Seconds of a contest: `seconds`, or `soak` in the long form (CLAIMD_SOAK is set). */
int64_t contest_seconds(int64_t seconds, int64_t soak);

#endif
