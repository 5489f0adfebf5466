/* SPDX-License-Identifier: Apache-2.0
 *
 * Which jobs belong to which role (feat.B39), in clusters that have owners. */
#include "sql_db.h"
#include "support/sql.h"

#include <stdio.h>

/* Roles belong to the server, not to the database, so they are made only once. */
static void setup_roles(void)
{
    setup();
    run("DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'shop') THEN "
        "CREATE ROLE shop; CREATE ROLE shop_2026 LOGIN; CREATE ROLE billing LOGIN; CREATE ROLE "
        "reports LOGIN; CREATE ROLE boss LOGIN; END IF; END $$");
    run("GRANT claimd_producer TO shop, shop_2026, billing");
    run("GRANT shop TO shop_2026");
    run("GRANT claimd_reader TO reports");
    run("GRANT claimd_admin TO boss");
}

static void as(const char *login, const char *role)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SET SESSION AUTHORIZATION %s", login);
    run(sql);
    if (role != NULL) {
        (void)snprintf(sql, sizeof sql, "SET ROLE %s", role);
        run(sql);
    }
}

static void as_superuser(void)
{
    run("RESET SESSION AUTHORIZATION");
    run("RESET ROLE");
}

#define OWNERS                                                                                  \
    "SELECT string_agg(id || ' ' || COALESCE(owner, '-'), ',' ORDER BY id, generation) FROM ("  \
    "SELECT id, generation, owner FROM claimd.job UNION ALL SELECT id, generation, owner FROM " \
    "claimd.job_history) j"

START_TEST(feat_B39_without_owners_every_producer_may_cancel_every_job)
{
    as("billing", NULL);
    run("SELECT claimd.enqueue('a')::text");
    as_superuser();
    as("shop_2026", NULL);
    run("SELECT state FROM claimd.job_status(1)");
    run("SELECT claimd.cancel(1)");
    as_superuser();
    ck_assert_str_eq(sql_text(db, OWNERS), "1 -");
}
END_TEST

START_TEST(feat_B39_a_job_belongs_to_the_role_that_made_it_in_whatever_way)
{
    run("SELECT claimd.set_owners(true)");
    as("shop_2026", "shop");
    run("SELECT claimd.enqueue('a')::text");
    run("SELECT id::text FROM claimd.enqueue_unique('a', unique_key => 'k')");
    run("SELECT claimd.enqueue_many('[{\"kind\": \"a\"}]')::text");
    run("INSERT INTO claimd.job (kind) VALUES ('a')");
    as_superuser();
    as("billing", NULL);
    run("SELECT claimd.enqueue('a')::text");
    ASSERT_REFUSED(db, "INSERT INTO claimd.job (kind, owner) VALUES ('a', 'shop')", "42501",
                   "permission denied");
    as_superuser();
    run("SELECT claimd.set_owners(false)");
    run("SELECT claimd.enqueue('a')::text");
    ck_assert_str_eq(sql_text(db, OWNERS), "1 shop,2 shop,3 shop,4 shop,5 billing,6 -");
}
END_TEST

START_TEST(feat_B39_a_job_keeps_its_owner_to_its_end_and_through_a_retry)
{
    run("SELECT claimd.set_owners(true)");
    as("billing", NULL);
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
    run("SELECT claimd.cancel(1)");
    as_superuser();
    run("SELECT claimd.retry(1)::text");
    ck_assert_str_eq(sql_text(db, OWNERS), "1 billing,1 billing,2 billing");
}
END_TEST

/* Must be refused to a stranger: job 1 and batch 1 belong to another role, job 2 to the
 * stranger. */
static const char *const strange[] = {
    "SELECT claimd.cancel(1)",
    "SELECT state FROM claimd.job_status(1)",
    "SELECT state FROM claimd.wait(1, '0 s')",
    "SELECT id::text FROM claimd.predecessors(1)",
    "SELECT claimd.after(1, '{2}')::text",
    "SELECT claimd.after(2, '{1}')::text",
    "SELECT claimd.enqueue('a', after => '{1}')::text",
    "SELECT claimd.enqueue_many('[{\"kind\": \"a\", \"after\": [1]}]')::text",
    "SELECT id::text FROM claimd.enqueue_unique('a', unique_key => 'k', on_conflict => 'replace')",
    "SELECT claimd.batch_add(1, 2)::text",
    "SELECT claimd.batch_close(1)::text",
    "SELECT claimd.batch_cancel(1)::text",
    "SELECT state FROM claimd.batch_status(1)",
};

static void make_jobs(void)
{
    run("SELECT claimd.set_owners(true)");
    as("shop_2026", "shop");
    run("SELECT claimd.enqueue('a', unique_key => 'k')::text");
    run("SELECT claimd.batch_open('b')::text");
    as_superuser();
    as("billing", NULL);
    run("SELECT claimd.enqueue('a')::text");
}

START_TEST(feat_B39_a_stranger_is_refused_with_the_owner_and_what_would_help)
{
    make_jobs();
    ASSERT_REFUSED(db, strange[_i], "42501", "belongs to role shop: role billing may not act");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(id::text, ',') FROM claimd.own_jobs"), "2");
    as_superuser();
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 2);
}
END_TEST

START_TEST(feat_B39_another_login_of_the_same_role_may_and_so_may_admins_and_readers_read)
{
    make_jobs();
    as_superuser();
    as("reports", NULL);
    run("SELECT state FROM claimd.job_status(1)");
    run("SELECT state FROM claimd.batch_status(1)");
    as_superuser();
    as("shop_2026", NULL); /* it could SET ROLE shop */
    run("SELECT state FROM claimd.job_status(1)");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(id::text, ',') FROM claimd.own_jobs"), "1");
    run("SELECT claimd.cancel(1)");
    as_superuser();
    as("boss", NULL);
    run("SELECT claimd.batch_close(1)::text");
    run("SELECT claimd.cancel(2)");
    as_superuser();
}
END_TEST

START_TEST(feat_B39_what_follows_a_batch_belongs_to_who_opened_it)
{
    run("SELECT claimd.set_owners(true)");
    as("billing", NULL);
    run("SELECT claimd.batch_open('b', follow_up => '{\"kind\": \"a\"}')::text");
    run("SELECT claimd.batch_close(1)::text");
    as_superuser();
    run("SELECT count(*)::text FROM claimd.end_batches()");
    ck_assert_str_eq(sql_text(db, OWNERS), "1 billing");
}
END_TEST

START_TEST(feat_B39_jobs_from_before_and_of_roles_that_are_gone_are_left_to_admins)
{
    run("SELECT claimd.enqueue('a')::text");
    run("SELECT claimd.set_owners(true)");
    run("SELECT claimd.enqueue('a')::text");
    run("UPDATE claimd.job SET owner = 'gone' WHERE id = 2");
    as("billing", NULL);
    ASSERT_REFUSED(db, "SELECT claimd.cancel(1)", "42501", "job 1 belongs to nobody");
    ASSERT_REFUSED(db, "SELECT claimd.cancel(2)", "42501", "job 2 belongs to role gone");
    ASSERT_REFUSED(db, "SELECT claimd.set_owners(false)", "42501", "permission denied");
    as_superuser();
    as("boss", NULL);
    run("SELECT claimd.cancel(1)");
    run("SELECT claimd.cancel(2)");
    as_superuser();
    ASSERT_REFUSED(db, "SELECT claimd.set_owners(NULL)", "CL002", "are_on: must be true or false");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("owners");
    TCase *tc = tcase_create("owners");
    tcase_add_checked_fixture(tc, setup_roles, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, feat_B39_without_owners_every_producer_may_cancel_every_job);
    tcase_add_test(tc, feat_B39_a_job_belongs_to_the_role_that_made_it_in_whatever_way);
    tcase_add_test(tc, feat_B39_a_job_keeps_its_owner_to_its_end_and_through_a_retry);
    tcase_add_loop_test(tc, feat_B39_a_stranger_is_refused_with_the_owner_and_what_would_help, 0,
                        ARRAY_COUNT(strange));
    tcase_add_test(tc,
                   feat_B39_another_login_of_the_same_role_may_and_so_may_admins_and_readers_read);
    tcase_add_test(tc, feat_B39_what_follows_a_batch_belongs_to_who_opened_it);
    tcase_add_test(tc, feat_B39_jobs_from_before_and_of_roles_that_are_gone_are_left_to_admins);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
