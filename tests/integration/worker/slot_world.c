/* SPDX-License-Identifier: Apache-2.0 */
#include "slot_world.h"

#include "support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct slot_world t;

/* ---- the slot's callbacks ---- */

static void on_hello(void *ctx, struct slot *slot, const char *json, size_t len)
{
    (void)ctx;
    (void)slot;
    ck_assert(len > 0 && json[0] == '{');
    t.hellos++;
}

static void on_room(void *ctx, struct slot *slot)
{
    (void)ctx;
    ck_assert_ptr_eq(slot, t.slot);
    t.idles++;
}

static void on_ended(void *ctx, struct slot *slot, void *job, const struct slot_run *run)
{
    (void)ctx;
    (void)slot;
    t.ends++;
    t.end = run->end;
    t.outcome = run->result != NULL ? (int)run->result->outcome : -1;
    t.ended_job = job;
    if (run->result != NULL) {
        (void)snprintf(t.result, sizeof t.result, "%.*s", (int)run->result->result_len,
                       run->result->result);
    }
}

static void on_returned(void *ctx, struct slot *slot, void *job)
{
    (void)ctx;
    (void)slot;
    t.returned++;
    t.returned_job = job;
}

static void on_died(void *ctx, struct slot *slot, int pid, const char *text)
{
    (void)ctx;
    (void)slot;
    (void)pid;
    t.death_us[t.deaths % DEATHS_MAX] = clock_boot_us();
    t.deaths++;
    (void)snprintf(t.death, sizeof t.death, "%s", text);
}

static void on_load_died(void *ctx, struct slot *slot, const char *file, const char *text,
                         bool is_hung)
{
    (void)ctx;
    (void)slot;
    (void)text;
    t.load_deaths++;
    t.has_hung = is_hung;
    (void)snprintf(t.load_file, sizeof t.load_file, "%s", file);
}

static const struct slot_events events = {.hello = on_hello,
                                          .room = on_room,
                                          .ended = on_ended,
                                          .returned = on_returned,
                                          .died = on_died,
                                          .load_died = on_load_died};

/* ---- the loop ---- */

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

bool is_idle(void)
{
    return slot_state(t.slot) == SLOT_IDLE;
}

void open_slot(void)
{
    struct err err = {0};
    ck_assert_msg(slot_open(&t.options, &t.slot, &err) == STATUS_OK, "%s", err.msg);
}

void slot_world_setup(void)
{
    memset(&t, 0, sizeof t);
    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(uv_loop_init(&t.loop), 0);
    ck_assert_int_eq(uv_timer_init(&t.loop, &t.tick), 0);
    ck_assert_int_eq(uv_timer_start(&t.tick, on_tick, 5, 5), 0);
    ck_assert_ptr_nonnull(getenv("CLAIMD_BIN_DIR"));
    (void)snprintf(t.runner, sizeof t.runner, "%s/claimd-runner", getenv("CLAIMD_BIN_DIR"));
    (void)snprintf(t.plugins, sizeof t.plugins, "%s", getenv("CLAIMD_TEST_PLUGIN_DIR"));
    t.options = (struct slot_options){.loop = &t.loop,
                                      .runner = t.runner,
                                      .plugin_dir = t.plugins,
                                      .jobs_max = 1000,
                                      .age_us = 3600 * US_PER_S,
                                      .events = &events};
}

void slot_world_teardown(void)
{
    int told = t.hellos + t.idles + t.ends + t.deaths;
    if (t.slot != NULL) {
        slot_close(t.slot);
    }
    uv_close((uv_handle_t *)&t.tick, NULL);
    ck_assert_int_eq(uv_run(&t.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&t.loop), 0);
    ck_assert_int_eq(t.hellos + t.idles + t.ends + t.deaths, told);
    if (t.ledger[0] != '\0') {
        (void)unlink(t.ledger); /* not earlier: a handler that is stopped writes once more */
    }
}

int64_t give(const char *kind, const char *args, void *job)
{
    static int64_t id = 6;
    static int64_t fence = 100;
    struct job_frame frame = {.id = ++id,
                              .fence = ++fence,
                              .attempt = 1,
                              .max_attempts = 3,
                              .timeout_us = 30 * US_PER_S,
                              .kind = kind,
                              .kind_len = strlen(kind),
                              .args = args,
                              .args_len = strlen(args)};
    return slot_run(t.slot, &frame, clock_boot_us() + 60 * US_PER_S, job);
}

int64_t run(const char *kind, const char *args, void *job)
{
    int64_t nonce = give(kind, args, job);
    slot_flush(t.slot);
    return nonce;
}

bool has_content(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && s.st_size > 0;
}

int64_t send_long_run(void)
{
    char args[160];
    (void)snprintf(t.ledger, sizeof t.ledger, "%s/slot-XXXXXX", suite_tmp());
    autoclose int fd = mkstemp(t.ledger);
    ck_assert_int_ge(fd, 0);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"ms\": 60000}", t.ledger);
    return run("ledger", args, &t);
}

int64_t start_long_run(void)
{
    int64_t nonce = send_long_run();
    RUN_UNTIL(has_content(t.ledger));
    return nonce;
}
