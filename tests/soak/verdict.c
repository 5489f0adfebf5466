/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/verdict.h"

#include "base/clock.h"
#include "soak/script.h"

#include <dirent.h>
#include <stdio.h>

#define NAME_SIZE 300
#define CHECK_MAX ((size_t)64 << 10)

/* Runs that were lost, each with the last fault of its worker before that. */
#define STRUCK                                                                         \
    "soak.run r JOIN claimd.worker w USING (worker_id) CROSS JOIN LATERAL (SELECT g.*" \
    " FROM soak.fault g WHERE g.pid = w.pid AND g.at < r.ended ORDER BY g.at DESC"     \
    " LIMIT 1) f WHERE r.outcome = 'lost'"

static const char wrong_mark[] = "\n-- wrong: ";

static int64_t print_rows(const char *name, const PGresult *r)
{
    for (int i = 0; i < PQntuples(r); i++) {
        (void)printf("violation %s: job %s %s\n", name,
                     PQgetisnull(r, i, 0) ? "-" : PQgetvalue(r, i, 0), PQgetvalue(r, i, 1));
    }
    return PQntuples(r);
}

/* Counts the rows of a check, and prints them if `name` is not NULL. */
static enum status count_rows(struct session *s, const char *sql, const char *name, int64_t *ret,
                              struct err *err)
{
    PGresult *r = NULL;
    enum status st = session_run(s, sql, NULL, 0, &r, err);
    if (st == STATUS_OK) {
        *ret = name != NULL ? print_rows(name, r) : PQntuples(r);
    }
    PQclear(r);
    return st;
}

/* Falsifies the evidence in a transaction, which is rolled back: the check must report it. */
static enum status prove(struct session *s, const char *name, const char *sql, const char *lie,
                         struct verdict *v, struct err *err)
{
    int64_t rows = 0;
    enum status st = session_do(s, err, "BEGIN; %s", lie);
    if (st == STATUS_OK) {
        st = count_rows(s, sql, NULL, &rows, err);
    }
    if (session_do(s, NULL, "ROLLBACK") != STATUS_OK) {
        session_close(s);
    }
    if (st == STATUS_OK && rows == 0) {
        (void)printf("violation %s: can't fail: it does not find `%s`\n", name, lie);
        v->violations++;
    }
    return st;
}

static enum status check_one(struct session *s, const char *name, const struct script_word *words,
                             struct verdict *v, struct err *err)
{
    char path[NAME_SIZE];
    int64_t rows = 0;
    autobuf struct buf text = BUF_INIT(CHECK_MAX);
    (void)snprintf(path, sizeof path, "checks/%s", name);
    enum status st = script_read(path, words, &text, err);
    if (st != STATUS_OK) {
        return st;
    }
    char *lie = strstr(buf_at(&text), wrong_mark);
    if (lie == NULL) {
        return err_fail(err, STATUS_INVALID, "%s: its last line must be `-- wrong: …`", path);
    }
    *lie = '\0';
    st = count_rows(s, buf_at(&text), name, &rows, err);
    if (st == STATUS_OK) {
        st = prove(s, name, buf_at(&text), lie + strlen(wrong_mark), v, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "%s", path);
        return st;
    }
    v->violations += rows;
    v->checks++;
    return STATUS_OK;
}

static int is_check(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".sql") == 0 ? 1 : 0;
}

static enum status check_all(struct session *s, const struct script_word *words, struct verdict *v,
                             struct err *err)
{
    struct dirent **names = NULL;
    enum status st = STATUS_OK;
    int count = scandir(SOAK_SOURCE_DIR "/checks", &names, is_check, alphasort);
    if (count <= 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "read %s/checks", SOAK_SOURCE_DIR);
    }
    for (int i = 0; i < count; i++) {
        if (st == STATUS_OK) {
            st = check_one(s, names[i]->d_name, words, v, err);
        }
        free(names[i]);
    }
    free(names);
    return st;
}

static enum status take_figures(struct session *s, struct verdict *v, struct err *err)
{
    enum status st =
        session_i64(s, &v->rescued, err, "SELECT count(*) FROM soak.run WHERE outcome = 'lost'");
    if (st != STATUS_OK) {
        return st;
    }
    st = session_i64(s, &v->repeated, err,
                     "SELECT count(*) FROM soak.start s JOIN soak.run r USING (fence) WHERE"
                     " r.outcome = 'lost' AND s.done_us IS NOT NULL");
    if (st != STATUS_OK) {
        return st;
    }
    st = session_i64(s, &v->first_rescue_ms, err,
                     "SELECT COALESCE(min(1000 * extract(epoch FROM r.ended - r.began))::bigint, 0)"
                     " FROM " STRUCK
                     " AND (f.what = 'kill for good' OR (f.what = 'stop' AND r.ended < f.until))");
    if (st != STATUS_OK) {
        return st;
    }
    return session_i64(s, &v->worst_rescue_ms, err,
                       "SELECT COALESCE(max(1000 * extract(epoch FROM r.ended - GREATEST(f.at,"
                       " r.began)))::bigint, 0) FROM " STRUCK);
}

enum status verdict_find(struct session *s, const struct folder *folder, int64_t slots,
                         struct verdict *ret, struct err *err)
{
    char slots_text[24];
    char boot_text[24];
    struct verdict v = {0};
    (void)snprintf(slots_text, sizeof slots_text, "%lld", (long long)slots);
    (void)snprintf(boot_text, sizeof boot_text, "%lld",
                   (long long)(clock_wall_us() - clock_boot_us()));
    const struct script_word words[] = {
        {"$FOLDER", folder->path}, {"$BOOT_US", boot_text}, {"$SLOTS", slots_text}, {NULL, NULL}};
    enum status st = script_run(s, "evidence.sql", words, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_all(s, words, &v, err);
    if (st == STATUS_OK) {
        st = take_figures(s, &v, err);
    }
    *ret = v;
    return st;
}
