/* SPDX-License-Identifier: Apache-2.0
 *
 * A failover to a streaming standby (fault D5). When the fault begins, a standby is made at the
 * free seat; when it ends, the primary is killed and the standby takes over. An asynchronous
 * standby is cut off in between: what is committed after that is lost with the primary. */
#include "base/clock.h"
#include "chaos/nemesis.h"

#include <stdio.h>

static void remove_standby(struct world *w, size_t seat)
{
    char dir[SERVER_PATH_MAX + 16];
    (void)snprintf(dir, sizeof dir, "%s/pg%zu", w->dir, seat);
    pg_server_kill(&w->pg[seat]);
    dir_remove(dir);
}

static enum status prepare(struct world *w, size_t seat, bool is_sync, struct err *err)
{
    char dir[SERVER_PATH_MAX + 16];
    (void)snprintf(dir, sizeof dir, "%s/pg%zu", w->dir, seat);
    enum status st = pg_standby_start(dir, world_primary(w), &w->pg[seat], err);
    if (st != STATUS_OK) {
        return st;
    }
    if (is_sync) {
        return pg_standby_set_sync(world_primary(w), true, err);
    }
    /* Records from when on an acknowledged commit may be lost. */
    journal_write(&w->nemesis, json_pack("{s:s, s:s}", "ph", "info", "x", "cut_off"));
    st = pg_standby_catch_up(&w->pg[seat], world_primary(w), err);
    if (st != STATUS_OK) {
        return st;
    }
    return pg_standby_cut(&w->pg[seat], err);
}

static bool begin(struct world *w, struct nemesis *n, bool is_sync)
{
    struct err why = {0};
    size_t seat = 1 - w->lead;
    if (world_primary(w)->pid <= 0 || w->pg_state.is_starting || w->is_failing_over ||
        w->is_pg_stopped) {
        return false;
    }
    nemesis_target(n, is_sync ? "synchronous" : "asynchronous", "pg%zu", w->lead);
    remove_standby(w, seat);
    if (prepare(w, seat, is_sync, &why) != STATUS_OK) {
        (void)printf("no standby: %s\n", why.msg);
        remove_standby(w, seat);
        return false;
    }
    w->is_failing_over = true;
    return true;
}

static bool begin_async(struct world *w, struct nemesis *n)
{
    return begin(w, n, false);
}

static bool begin_sync(struct world *w, struct nemesis *n)
{
    return begin(w, n, true);
}

static void take_over(struct world *w, struct nemesis *n)
{
    struct err why = {0};
    size_t old = w->lead;
    world_pg_is_gone(w, true);
    pg_server_kill(&w->pg[old]);
    w->lead = 1 - old;
    w->pg_state = (struct server_state){.restart_us = WORLD_NEVER};
    if (pg_standby_promote(world_primary(w), &why) != STATUS_OK) {
        (void)printf("no failover: %s\n", why.msg);
    }
    world_pg_is_gone(w, false);
    w->is_failing_over = false;
    (void)snprintf(n->detail, sizeof n->detail, "to pg%zu", w->lead);
}

const struct nemesis_def nemesis_failover_defs[] = {
    {"failover_async", "the primary dies, and a standby that lacks its last commits takes over",
     COUNT_FAILOVER, TRAIT_PG_GONE | TRAIT_FAILOVER | TRAIT_LOSES_COMMITS, 600000, 1000, 4000,
     begin_async, take_over},
    {"failover_sync", "the primary dies, and a synchronous standby takes over", COUNT_FAILOVER,
     TRAIT_PG_GONE | TRAIT_FAILOVER, 600000, 1000, 4000, begin_sync, take_over},
};
const size_t nemesis_failover_count = ARRAY_COUNT(nemesis_failover_defs);
