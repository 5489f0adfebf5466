/* SPDX-License-Identifier: Apache-2.0
 *
 * One slot with real runners, and its callbacks. */
#ifndef CLAIMD_TESTS_SLOT_WORLD_H
#define CLAIMD_TESTS_SLOT_WORLD_H

#include "base/clock.h"
#include "cluster/servers.h"
#include "support/suite.h"
#include "worker/slots/slot.h"

#include <check.h>

#define DEATHS_MAX 16

struct slot_world {
    uv_loop_t loop;
    uv_timer_t tick; /* lets a waiting test check its deadline */
    struct slot_options options;
    struct slot *slot;
    char runner[1024];
    char plugins[1024];
    char ledger[96]; /* written by a long run */
    int hellos;
    int idles;
    int ends;
    int deaths;
    int64_t death_us[DEATHS_MAX];
    char death[256];
    int load_deaths;
    bool has_hung;
    char load_file[256];
    enum run_end end;
    int outcome;
    char result[512];
    void *ended_job;
    int returned;
    void *returned_job;
};
extern struct slot_world t;

#define RUN_UNTIL(expr)                                                \
    do {                                                               \
        int64_t end_us_ = clock_boot_us() + SOON_US;                   \
        while (!(expr)) {                                              \
            ck_assert_msg(clock_boot_us() < end_us_, "never: " #expr); \
            (void)uv_run(&t.loop, UV_RUN_ONCE);                        \
        }                                                              \
    } while (0)

void slot_world_setup(void);
/* Closes the slot, which must call back no more and leave no handle and no memory. */
void slot_world_teardown(void);

void open_slot(void); /* with t.options */
bool is_idle(void);

/* Returns the run's nonce. give() leaves the job waiting for slot_flush(). */
int64_t give(const char *kind, const char *args, void *job);
int64_t run(const char *kind, const char *args, void *job);

bool has_content(const char *path);
/* Sends a run that writes to t.ledger once its handler is working; a SIGTERM ends it. */
int64_t send_long_run(void);
int64_t start_long_run(void);

#endif
