/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimctl lock-nodes`: shows and changes the list of lock nodes that the cluster was made with
 * (lock.N8). Quorums of two lists need not overlap, so no process may win a lock at the new nodes
 * while a lease at the former ones may be valid. Therefore no daemon may be alive (by its
 * heartbeats, which the change locks out); then, for T_max + D, the stored list fits no daemon; and
 * only then is the new list written. A lock that is still held at a former node after that time is
 * being extended by a process that PostgreSQL does not know. */
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/commands/doctor/redis_ask.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "model/hint.h"
#include "sql/queries.h"

#include <stdio.h>

#define LIST_SIZE 4096
#define NOBODYS "(being changed by claimctl lock-nodes set)"
#define RUNNING_MAX 100
#define NAMES_SIZE 400

struct change {
    struct config config;
    struct admin *admin;
    char wanted[LIST_SIZE];
    char present[LIST_SIZE];
    char before[LIST_SIZE]; /* the list before the change, while it is in progress */
    int64_t t_max_us;
    bool is_forced;
};

static enum status read_cluster(struct change *c, const struct pg_statement *statement,
                                struct err *err)
{
    enum { PRESENT, BEFORE, T_MAX };
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(c->admin, statement, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *t_max = admin_value(rows, 0, T_MAX);
    (void)snprintf(c->present, sizeof c->present, "%s", admin_value(rows, 0, PRESENT));
    (void)snprintf(c->before, sizeof c->before, "%s", admin_value(rows, 0, BEFORE));
    return parse_i64(t_max, strlen(t_max), 0, INT64_MAX, &c->t_max_us, err);
}

static enum status open_change(const struct ctl *ctl, struct change *c, struct err *err)
{
    enum status st = ctl_load_config(ctl, &c->config, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = redis_endpoint_sorted_list(c->config.lock.nodes[0], sizeof c->config.lock.nodes[0],
                                    c->config.lock.node_count, c->wanted, sizeof c->wanted, err);
    if (st != STATUS_OK) {
        err_prefix(err, "lock.nodes");
        return st;
    }
    st = ctl_connect(&c->config, false, &c->admin, err);
    if (st != STATUS_OK) {
        return st;
    }
    return read_cluster(c, &SQL_ADMIN_LOCK_NODES, err);
}

static enum status print(const struct ctl *ctl, const struct change *c, struct err *err)
{
    static const struct table_column columns[] = {
        {"cluster", CELL_TEXT}, {"former", CELL_TEXT}, {"here", CELL_TEXT}, {"is_same", CELL_BOOL}};
    const char *const values[] = {
        c->present[0] != '\0' ? c->present : NULL, c->before[0] != '\0' ? c->before : NULL,
        c->wanted[0] != '\0' ? c->wanted : NULL, strcmp(c->present, c->wanted) == 0 ? "t" : "f"};
    return PRINT_RECORD(ctl, "lock_nodes", columns, values, err);
}

/* ---- live daemons ---- */

static enum status refuse_live(struct change *c, struct err *err)
{
    enum { PROGRAM, HOST, PID, AGE };
    char names[NAMES_SIZE] = "";
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(c->admin, &SQL_ADMIN_LOCK_NODES_LIVE, NULL, &rows, err);
    if (st != STATUS_OK || admin_row_count(rows) == 0) {
        return st;
    }
    for (int i = 0; i < admin_row_count(rows); i++) {
        size_t len = strlen(names);
        (void)snprintf(names + len, sizeof names - len, "%s%s on %s (pid %s, heartbeat %s s ago)",
                       i > 0 ? ", " : "", admin_value(rows, i, PROGRAM), admin_value(rows, i, HOST),
                       admin_value(rows, i, PID), admin_value(rows, i, AGE));
    }
    return err_fail(
        err, STATUS_CONFLICT,
        "daemons are alive: %s; stop them all (a killed one counts as alive for some seconds)",
        names);
}

/* Keys at the former nodes: the leader's, then those of jobs whose rows are still running. */
struct held {
    int64_t ids[RUNNING_MAX];
    size_t count;
    char worker[160]; /* of the first job */
    bool is_held[RUNNING_MAX + 1];
};

static enum status read_running(struct change *c, struct held *h, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(c->admin, &SQL_ADMIN_LOCK_NODES_RUNNING, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (int i = 0; i < admin_row_count(rows) && i < RUNNING_MAX; i++) {
        const char *id = admin_value(rows, i, 0);
        st = parse_i64(id, strlen(id), 1, INT64_MAX, &h->ids[h->count++], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (h->count > 0) {
        (void)snprintf(h->worker, sizeof h->worker, "%s (pid %s)", admin_value(rows, 0, 1),
                       admin_value(rows, 0, 2));
    }
    return STATUS_OK;
}

static void on_reply(void *ctx, size_t node, size_t index, const struct redis_value *v)
{
    struct held *h = ctx;
    (void)node;
    h->is_held[index] = h->is_held[index] || v->type == REDIS_STRING ||
                        (v->type == REDIS_INTEGER && v->integer > 0);
}

static enum status put_questions(const struct change *c, const struct held *h, struct buf *out,
                                 struct err *err)
{
    char key[LOCK_KEY_MAX];
    (void)snprintf(key, sizeof key, "%s:leader", c->config.redis.prefix);
    const struct redis_arg leader[] = {redis_word("GET"), redis_word(key)};
    enum status st = redis_command(out, leader, ARRAY_COUNT(leader), err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < h->count; i++) {
        size_t len = job_lock_key(key, c->config.redis.prefix, h->ids[i]);
        const struct redis_arg job[] = {redis_word("EXISTS"), redis_bytes(key, len)};
        st = redis_command(out, job, ARRAY_COUNT(job), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* Splits the stored list into nodes. */
static size_t split(const char *list, char ret_nodes[CONFIG_NODES_MAX][CONFIG_TEXT_MAX])
{
    size_t count = 0;
    for (const char *at = list; *at != '\0' && count < CONFIG_NODES_MAX;) {
        size_t len = strcspn(at, ",");
        (void)snprintf(ret_nodes[count++], CONFIG_TEXT_MAX, "%.*s", (int)len, at);
        at += len + (at[len] == ',' ? 1 : 0);
    }
    return count;
}

static enum status judge_held(const struct change *c, const struct held *h, bool is_all_asked,
                              const char *why, struct err *err)
{
    if (h->is_held[0]) {
        return err_fail(
            err, STATUS_CONFLICT,
            "a scheduler still leads on the former nodes: find and stop it, then run this again");
    }
    for (size_t i = 0; i < h->count; i++) {
        if (h->is_held[i + 1]) {
            return err_fail(
                err, STATUS_CONFLICT,
                "the lock of job %lld is still held on the former nodes: its worker is alive, "
                "though PostgreSQL hears nothing from it; find and stop it, then run this again",
                (long long)h->ids[i]);
        }
    }
    if (!is_all_asked && h->count > 0 && !c->is_forced) {
        return err_fail(
            err, STATUS_CONFLICT,
            "%zu jobs are still marked as running, the first on %s, which did not stop cleanly, "
            "and not all former nodes can be asked whether it holds their locks (%s): make sure "
            "that no claimd-worker runs anywhere, then add --force",
            h->count, h->worker, why);
    }
    return STATUS_OK;
}

/* Called T_max + D later: a process extends each lock that is still held. */
static enum status refuse_held(struct change *c, struct err *err)
{
    char nodes[CONFIG_NODES_MAX][CONFIG_TEXT_MAX];
    struct held h = {.count = 0};
    struct err why = {0};
    size_t answered = 0;
    autobuf struct buf out = BUF_INIT((size_t)1 << 16);
    enum status st = read_running(c, &h, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_questions(c, &h, &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct redis_ask ask = {.nodes = (const char(*)[CONFIG_TEXT_MAX])nodes,
                                  .node_count = split(c->before, nodes),
                                  .config = &c->config,
                                  .questions = &out,
                                  .question_count = 1 + h.count,
                                  .on_reply = on_reply,
                                  .ctx = &h};
    bool is_asked = redis_ask(&ask, &answered, &why) == STATUS_OK && answered == ask.node_count;
    return judge_held(c, &h, is_asked, why.msg[0] != '\0' ? why.msg : "some do not answer", err);
}

/* ---- the change ---- */

static enum status step_begun(struct change *c, const struct pg_statement *statement,
                              const char *list, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_exec(c->admin, "BEGIN", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_cluster(c, &SQL_ADMIN_LOCK_NODES_HOLD, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = refuse_live(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    return admin_query(c->admin, statement, &list, &rows, err);
}

/* Holds the row of the cluster in one transaction, checks that no daemon is alive, and runs
 * `statement`. */
static enum status step(struct change *c, const struct pg_statement *statement, const char *list,
                        struct err *err)
{
    enum status st = step_begun(c, statement, list, err);
    if (st != STATUS_OK) {
        enum status undone = admin_exec(c->admin, "ROLLBACK", NULL);
        (void)undone; /* if the connection is lost, the transaction is undone as well */
        return st;
    }
    return verb_written(admin_exec(c->admin, "COMMIT", err), err);
}

static void wait_for_leases(const struct change *c)
{
    int64_t ttl_us = c->config.lock.ttl_us > c->t_max_us ? c->config.lock.ttl_us : c->t_max_us;
    int64_t us = ttl_us + ttl_us / 1000000 * c->config.lock.drift_ppm + 2 * US_PER_MS;
    (void)fprintf(stderr,
                  "claimctl: waiting %.1f s: until then leases may live on the former nodes\n",
                  (double)us / US_PER_S);
    int64_t end_us = clock_boot_us() + us;
    while (clock_boot_us() < end_us) { /* a signal may end a rest early */
        ctl_rest(end_us - clock_boot_us());
    }
}

static enum status change(struct change *c, struct err *err)
{
    if (c->present[0] == '\0') {
        return step(c, &SQL_ADMIN_LOCK_NODES_END, c->wanted, err); /* no daemon has ever joined */
    }
    enum status st = step(c, &SQL_ADMIN_LOCK_NODES_BEGIN, NOBODYS, err);
    if (st != STATUS_OK) {
        return st;
    }
    wait_for_leases(c);
    st = read_cluster(c, &SQL_ADMIN_LOCK_NODES, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = refuse_held(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = step(c, &SQL_ADMIN_LOCK_NODES_END, c->wanted, err);
    if (st != STATUS_OK) {
        return st;
    }
    return read_cluster(c, &SQL_ADMIN_LOCK_NODES, err);
}

static enum status show(const struct ctl *ctl, struct change *c, struct err *err)
{
    enum status st = open_change(ctl, c, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print(ctl, c, err);
}

static enum status set(const struct ctl *ctl, const struct ctl_args *args, struct change *c,
                       struct err *err)
{
    enum status st = open_change(ctl, c, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (c->wanted[0] == '\0') {
        return err_fail(err, STATUS_INVALID, "lock.nodes is empty: 1 to 9 are needed");
    }
    if (strcmp(c->present, c->wanted) == 0) {
        return print(ctl, c, err);
    }
    if (ctl_value(args, "yes") == NULL) {
        return err_fail(err, STATUS_INVALID,
                        "this changes the cluster's lock nodes from %s to %s (lock.nodes here); "
                        "stop all daemons, then add --yes",
                        c->before[0] != '\0' ? c->before : c->present, c->wanted);
    }
    st = change(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(c->present, sizeof c->present, "%s", c->wanted);
    return print(ctl, c, err);
}

enum status lock_nodes_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    autofree struct change *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st = show(ctl, c, err);
    admin_close(c->admin);
    return st;
}

enum status lock_nodes_set(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    autofree struct change *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    c->is_forced = ctl_value(args, "force") != NULL;
    enum status st = set(ctl, args, c, err);
    admin_close(c->admin);
    return st;
}
