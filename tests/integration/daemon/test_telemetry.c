/* SPDX-License-Identifier: Apache-2.0
 *
 * The telemetry of a process whose loop misbehaves. The loop runs in a thread of its own here; the
 * test's thread sends HTTP requests and plays the supervisor. */
#include "base/clock.h"
#include "cluster/scrape.h"
#include "cluster/servers.h"
#include "daemon/telemetry.h"
#include "support/suite.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define WATCHDOG_MS 200
#define ANSWER_MAX ((size_t)1 << 20)

static const struct metric_family office = {
    .name = "test_leads", .help = "1: it leads.", .type = METRIC_GAUGE};

struct program {
    uv_loop_t loop;
    uv_async_t order; /* makes the loop read the next fields */
    uv_timer_t spin;
    pthread_t thread;
    struct telemetry *telemetry;
    atomic_bool must_spin;
    atomic_bool must_hang;
    atomic_bool must_end;
    atomic_bool works;
    atomic_llong lease_until_us;
    int supervisor; /* receives the watchdog's notifications */
};

static struct program p;
static char dir[SERVER_PATH_MAX];

static void on_collect(void *ctx)
{
    (void)ctx;
}

static void on_ready(void *ctx, struct health *ret)
{
    (void)ctx;
    health_add(ret, "started", true, "unused");
}

static void on_alive(void *ctx, struct health *ret)
{
    const struct program *q = ctx;
    health_add(ret, "working", atomic_load(&q->works), "has done nothing");
}

static int64_t on_lease(void *ctx)
{
    const struct program *q = ctx;
    return atomic_load(&q->lease_until_us);
}

/* Acts like a feed that is due, cannot continue, and starts its timer for "at once" again. */
static void on_spin(uv_timer_t *timer)
{
    struct program *q = timer->data;
    if (atomic_load(&q->must_spin)) {
        uv_update_time(&q->loop); /* so that the others become due */
        (void)uv_timer_start(timer, on_spin, 0, 0);
    }
}

static void on_order(uv_async_t *order)
{
    struct program *q = order->data;
    while (atomic_load(&q->must_hang)) {
        wait_step();
    }
    if (atomic_load(&q->must_spin)) {
        (void)uv_timer_start(&q->spin, on_spin, 0, 0);
    }
    if (atomic_load(&q->must_end)) {
        telemetry_stop(q->telemetry);
        uv_close((uv_handle_t *)&q->spin, NULL);
        uv_close((uv_handle_t *)&q->order, NULL);
    }
}

static void *run(void *arg)
{
    (void)uv_run(arg, UV_RUN_DEFAULT);
    return NULL;
}

static int supervisor_open(void)
{
    struct err err = {0};
    char text[32];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    ck_assert_msg(dir_make(dir, sizeof dir, &err) == STATUS_OK, "%s", err.msg);
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s/notify", dir);
    ck_assert_int_lt(n, (int)sizeof at.sun_path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    (void)snprintf(text, sizeof text, "%d", (int)(WATCHDOG_MS * US_PER_MS));
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", at.sun_path, 1), 0);
    ck_assert_int_eq(setenv("WATCHDOG_USEC", text, 1), 0);
    return fd;
}

static void setup(void)
{
    struct err err = {0};
    p = (struct program){.supervisor = supervisor_open()};
    atomic_store(&p.works, true);
    ck_assert_int_eq(uv_loop_init(&p.loop), 0);
    ck_assert_int_eq(uv_async_init(&p.loop, &p.order, on_order), 0);
    ck_assert_int_eq(uv_timer_init(&p.loop, &p.spin), 0);
    p.order.data = &p;
    p.spin.data = &p;
    const struct telemetry_options options = {.loop = &p.loop,
                                              .http_key = "test.http_listen",
                                              .http_listen = "127.0.0.1:0",
                                              .collect = on_collect,
                                              .ready = on_ready,
                                              .alive = on_alive,
                                              .lease_family = &office,
                                              .lease = on_lease,
                                              .ctx = &p};
    ck_assert_msg(telemetry_open(&options, &p.telemetry, &err) == STATUS_OK, "%s", err.msg);
    ck_assert_int_eq(pthread_create(&p.thread, NULL, run, &p.loop), 0);
}

static void teardown(void)
{
    atomic_store(&p.must_hang, false);
    atomic_store(&p.must_spin, false);
    atomic_store(&p.must_end, true);
    (void)uv_async_send(&p.order);
    ck_assert_int_eq(pthread_join(p.thread, NULL), 0);
    telemetry_free(p.telemetry);
    ck_assert_int_eq(uv_loop_close(&p.loop), 0);
    ck_assert_int_eq(close(p.supervisor), 0);
    dir_remove(dir);
}

static void order(atomic_bool *what)
{
    atomic_store(what, true);
    (void)uv_async_send(&p.order);
}

/* True if `path` answers with 200. */
static bool is_fine(const char *path)
{
    autobuf struct buf out = BUF_INIT(ANSWER_MAX);
    return scrape_get(telemetry_address(p.telemetry), path, SOON_US, &out, NULL) == STATUS_OK;
}

/* Returns −1 if there are no figures. */
static double leads(void)
{
    autobuf struct buf out = BUF_INIT(ANSWER_MAX);
    enum status st = scrape_get(telemetry_address(p.telemetry), "/metrics", SOON_US, &out, NULL);
    return st == STATUS_OK ? scrape_sum(buf_at(&out), office.name, NULL) : -1;
}

/* True if the watchdog is notified within this time. Earlier notifications do not count. */
static bool is_watchdog_told(int within_ms)
{
    char text[64];
    struct pollfd fd = {.fd = p.supervisor, .events = POLLIN};
    while (recv(p.supervisor, text, sizeof text, MSG_DONTWAIT) > 0) {
    }
    return poll(&fd, 1, within_ms) == 1;
}

START_TEST(a_loop_that_turns_is_alive_and_its_watchdog_is_told)
{
    ck_assert(is_watchdog_told((int)(SOON_US / US_PER_MS)));
    ck_assert(is_watchdog_told((int)(SOON_US / US_PER_MS)));
    ck_assert(is_fine("/healthz"));
}
END_TEST

/* libuv before 1.45 runs due timers until none is left: a timer that is always started for "at
 * once" again keeps it from ever polling, while all other timers run. */
START_TEST(a_loop_that_runs_timers_and_never_polls_is_not_alive)
{
    ck_assert(is_watchdog_told((int)(SOON_US / US_PER_MS)));
    if (uv_version() >= ((1U << 16) | (45U << 8))) {
        return; /* such a loop polls */
    }
    order(&p.must_spin);
    ck_assert(WAIT_UNTIL(!is_fine("/healthz"), SOON_US));
    ck_assert(!is_fine("/readyz"));
    ck_assert(!is_fine("/metrics"));
    ck_assert(!is_watchdog_told(5 * WATCHDOG_MS));
}
END_TEST

START_TEST(who_turns_but_does_not_work_is_not_alive_until_it_does)
{
    ck_assert(is_watchdog_told((int)(SOON_US / US_PER_MS)));
    atomic_store(&p.works, false);
    ck_assert(WAIT_UNTIL(!is_fine("/healthz"), SOON_US));
    ck_assert(!is_fine("/readyz"));
    ck_assert(is_fine("/metrics"));
    ck_assert(!is_watchdog_told(5 * WATCHDOG_MS));
    atomic_store(&p.works, true);
    ck_assert(WAIT_UNTIL(is_fine("/healthz"), SOON_US));
    ck_assert(is_watchdog_told((int)(SOON_US / US_PER_MS)));
}
END_TEST

START_TEST(what_is_held_by_a_lease_ends_with_it_although_the_loop_hangs)
{
    ck_assert(leads() == 0);
    atomic_store(&p.lease_until_us, clock_boot_us() + 2 * US_PER_S);
    ck_assert(WAIT_UNTIL(leads() == 1, SOON_US));
    order(&p.must_hang);
    ck_assert(WAIT_UNTIL(leads() == 0, SOON_US));
    atomic_store(&p.must_hang, false);
    atomic_store(&p.lease_until_us, clock_boot_us() + 3600 * US_PER_S);
    ck_assert(WAIT_UNTIL(leads() == 1, SOON_US));
    atomic_store(&p.lease_until_us, 0); /* given up before it expired */
    ck_assert(WAIT_UNTIL(leads() == 0, SOON_US));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("telemetry");
    TCase *t = tcase_create("telemetry");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_loop_that_turns_is_alive_and_its_watchdog_is_told);
    tcase_add_test(t, a_loop_that_runs_timers_and_never_polls_is_not_alive);
    tcase_add_test(t, who_turns_but_does_not_work_is_not_alive_until_it_does);
    tcase_add_test(t, what_is_held_by_a_lease_ends_with_it_although_the_loop_hangs);
    suite_add_tcase(s, t);
    return suite_run(s);
}
