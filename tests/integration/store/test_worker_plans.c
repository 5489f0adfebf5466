/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's session plans each statement once, for whatever the tables become (ARCHITECTURE §3): so
 * each plan must look up its rows by an index, when it is made on tables that are empty and were
 * never analysed as well as on large ones. */
#include "support/pg_fixture.h"

#include "sql/queries.h"
#include "support/suite.h"

#include <stdio.h>

static struct pg *db;

/* All that a worker sends, but what asks for plan_anew first. */
static const struct pg_statement *const statements[] = {
    &SQL_JOB_CLAIM,       &SQL_JOB_CLAIM_SKIP,    &SQL_JOB_CLAIM_LIMITED, &SQL_JOB_ADOPT,
    &SQL_JOB_ARGS,        &SQL_JOB_COMPLETE,      &SQL_JOB_COMPLETE_SKIP, &SQL_JOB_DROP,
    &SQL_JOB_DROP_SKIP,   &SQL_JOB_DISCARD,       &SQL_JOB_RETRY,         &SQL_JOB_SNOOZE,
    &SQL_JOB_HAND_BACK,   &SQL_JOB_EXHAUST,       &SQL_JOB_FIND,          &SQL_JOB_DUE,
    &SQL_JOB_FREE_ENDED,  &SQL_JOB_KINDS,         &SQL_JOB_LIVE_FORGET,   &SQL_JOB_LIVE_SAVE,
    &SQL_JOB_RECHECK,     &SQL_JOB_RECORD_DONE,   &SQL_JOB_CANCEL_ASKED,  &SQL_LIMIT_NEXT,
    &SQL_WORKER_BEAT,     &SQL_WORKER_KINDS,      &SQL_WORKER_REGISTER,   &SQL_WORKER_DEAD,
    &SQL_WORKER_STOPPED,  &SQL_WORKER_END_BACKEND, &SQL_CLUSTER_JOIN,     &SQL_FENCE_CHECK};

/* Those that may have millions of rows. */
static const char *const large[] = {"job", "job_history", "job_attempt", "job_live", "exclusive",
                                    "key_waiting"};

static void setup_session(void)
{
    world_setup();
    struct pg_options options = {.loop = &world.loop,
                                 .conninfo = world.conninfo,
                                 .application_name = "plans",
                                 .timeout_us = SOON_US,
                                 .plans_once = true};
    ck_assert_int_eq(pg_open(&options, &db, NULL), STATUS_OK);
    RUN_UNTIL(pg_is_up(db));
}

static void teardown_session(void)
{
    pg_close(db);
    world_teardown();
}
