/* SPDX-License-Identifier: Apache-2.0
 *
 * Effects that happen exactly once (guarantee G4, feat.A18): handlers whose transaction completes
 * their job, on real servers, while workers, runners and sessions are killed. */
#include "support/fleet.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define WORKERS 3
#define ORDERS 5000
#define STOCK 3000
#define KILLS 12

static struct fleet f;

static void write_service(FILE *file, const char *name)
{
    (void)fprintf(file, "[%s]\n", name);
    for (const char *at = f.conninfo; *at != '\0';) { /* "host=… port=… user=…" */
        size_t len = strcspn(at, " ");
        if (strncmp(at, "user=", 5) != 0) {
            (void)fprintf(file, "%.*s\n", (int)len, at);
        }
        at += len + strspn(at + len, " ");
    }
    (void)fprintf(file, "user=%s\n", name);
}

/* Writes the services that the plugins connect to into a home directory for the test. */
static void write_services(void)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/owner", f.dir);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/owner/.pg_service.conf", f.dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    write_service(file, "inventory");
    write_service(file, "cmdb");
    ck_assert_int_eq(fclose(file), 0);
}

static void run_file(const char *name)
{
    char path[SERVER_PATH_MAX + 64];
    static char sql[8192];
    (void)snprintf(path, sizeof path, "%s/plugins/%s", getenv("CLAIMD_SOURCE_DIR"), name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    sql[fread(sql, 1, sizeof sql - 1, file)] = '\0';
    (void)fclose(file);
    sql_run(f.sql, "%s", sql);
}

static void start_worker(size_t i)
{
    char home[SERVER_PATH_MAX + 32];
    (void)snprintf(home, sizeof home, "HOME=%s/owner", f.dir);
    fleet_launch_worker(&f, i, (const char *const[]){home, NULL});
}

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){0});
    fleet_add_plugin(&f, "CLAIMD_EXAMPLE_PLUGIN_DIR", "inventory.so");
    fleet_add_plugin(&f, "CLAIMD_EXAMPLE_PLUGIN_DIR", "cmdb_merge.so");
    write_services();
    run_file("inventory.sql");
    run_file("cmdb_merge.sql");
    fleet_start_scheduler(&f, 0);
    for (size_t i = 0; i < WORKERS; i++) {
        start_worker(i);
    }
}

static void teardown(void)
{
    fleet_stop(&f);
}

static int64_t finished(void)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job_history");
}

/* Kills a worker, a runner with its handler, or the handler's session. */
static void kill_one(int n)
{
    switch (n % 3) {
    case 0: {
        size_t i = (size_t)n / 3 % WORKERS;
        fleet_signal(f.workers[i], SIGKILL);
        (void)fleet_wait_end(&f, &f.workers[i]);
        start_worker(i);
        break;
    }
    case 1:
        fleet_kill_runner(&f, (size_t)n / 3 % WORKERS);
        break;
    default:
        sql_run(f.sql, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                       "application_name IN ('inventory', 'cmdb') AND state <> 'idle'");
        break;
    }
}

START_TEST(A18_a_stock_is_never_oversold_and_each_order_takes_once_whatever_is_killed)
{
    sql_run(f.sql, "INSERT INTO inventory.stock VALUES ('cup', %d)", STOCK);
    sql_run(f.sql,
            "INSERT INTO claimd.job (kind, args, max_attempts) SELECT 'inventory_deduct', "
            "'{\"sku\": \"cup\", \"quantity\": 1}', 1000 FROM generate_series(1, %d)",
            ORDERS);
    for (int n = 0; n < KILLS; n++) {
        ck_assert(WAIT_UNTIL(finished() >= ORDERS * (int64_t)(n + 1) / (KILLS + 2), SOON_US));
        kill_one(n);
    }
    fleet_wait_finished(&f, ORDERS, "completed", SOON_US);
    ck_assert_int_eq(sql_number(f.sql, "SELECT quantity FROM inventory.stock"), 0);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM inventory.deduction"), STOCK);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job_history h LEFT JOIN "
                                       "inventory.deduction d ON d.job_id = h.id WHERE "
                                       "(h.result ->> 'taken')::int <> COALESCE(d.quantity, 0)"),
                     0);
}
END_TEST

#define MACHINES 8
#define FACTS 60 /* per machine */

START_TEST(A10_what_is_merged_into_one_record_at_once_is_all_there_whatever_is_killed)
{
    sql_run(f.sql,
            "SELECT count(claimd.enqueue('cmdb_merge', jsonb_build_object('machine', 'm' || m, "
            "'facts', jsonb_build_object('d' || d, d)), exclusive_key => 'm' || m, max_attempts => "
            "1000)) FROM generate_series(1, %d) AS d, generate_series(1, %d) AS m",
            FACTS, MACHINES);
    for (int n = 0; n < KILLS; n++) {
        int64_t wanted = MACHINES * FACTS * (int64_t)(n + 1) / (KILLS + 2);
        ck_assert(WAIT_UNTIL(finished() >= wanted, SOON_US));
        kill_one(n);
    }
    fleet_wait_finished(&f, MACHINES * (int64_t)FACTS, "completed", SOON_US);
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM cmdb.machine m WHERE facts = (SELECT "
                                "jsonb_object_agg('d' || d, d) FROM generate_series(1, %d) d)",
                                FACTS),
                     MACHINES);
}
END_TEST

START_TEST(A18_an_order_for_more_than_there_is_takes_nothing_and_bad_orders_fail)
{
    sql_run(f.sql, "INSERT INTO inventory.stock VALUES ('cup', 5)");
    (void)fleet_enqueue(&f, "inventory_deduct", "{\"sku\": \"cup\", \"quantity\": 6}", 1);
    fleet_wait_finished(&f, 1, "completed", SOON_US);
    ck_assert_int_eq(sql_number(f.sql, "SELECT (result ->> 'taken')::int FROM claimd.job_history"),
                     0);
    int64_t bad = fleet_enqueue(&f, "inventory_deduct", "{\"sku\": \"cup\", \"quantity\": 0}", 1);
    ck_assert(WAIT_UNTIL(finished() == 2, SOON_US));
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT count(*) FROM claimd.job_history WHERE id = %lld AND state = "
                   "'discarded' AND error LIKE 'args must be {\"sku\"%%'",
                   (long long)bad),
        1);
    ck_assert_int_eq(sql_number(f.sql, "SELECT quantity FROM inventory.stock"), 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("effects once");
    TCase *tc = tcase_create("effects once");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, A18_a_stock_is_never_oversold_and_each_order_takes_once_whatever_is_killed);
    tcase_add_test(tc, A10_what_is_merged_into_one_record_at_once_is_all_there_whatever_is_killed);
    tcase_add_test(tc, A18_an_order_for_more_than_there_is_takes_nothing_and_bad_orders_fail);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
