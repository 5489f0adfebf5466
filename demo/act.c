/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/act.h"

#include "base/clock.h"

#include <stdio.h>

#define OUTPUT_MAX ((size_t)1 << 20)
#define QUERY "SELECT id, path FROM demo_file"

static enum status ask(struct cluster *c, const char *sql, struct buf *out, struct err *err)
{
    enum status st = cluster_sql(c, sql, out, err);
    if (st != STATUS_OK) {
        err_prefix(err, "second act");
    }
    return st;
}

static enum status compare(struct cluster *c, struct act *act, struct err *err)
{
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    enum status st = ask(c,
                         "SELECT count(*), count(*) FILTER (WHERE s.state = 'completed' AND"
                         " split_part(ltrim(s.result #>> '{}', '\\'), ' ', 1) = f.md5)"
                         " FROM demo_file f LEFT JOIN demo_sum s ON s.key = f.id",
                         &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    char *at = buf_at(&out);
    act->rows = strtol(at, &at, 10);
    act->equal = strtol(at + 1, NULL, 10);
    return STATUS_OK;
}

enum status act_map(struct cluster *c, struct act *ret, struct err *err)
{
    static const char *const map[] = {
        "map", "--sql",   QUERY, "--batch",      "demo", "--into", "demo_sum", "--concurrency",
        "4",   "--quiet", "--",  CLUSTER_MD5SUM, "--",   "{path}", NULL};
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    enum status st = ask(c,
                         "CREATE TABLE demo_file AS SELECT id, args->>'path' AS path, args->>'md5'"
                         " AS md5 FROM claimd.job_history WHERE result->>'verdict' = 'match'"
                         " ORDER BY id LIMIT 1000; ALTER TABLE demo_file ADD PRIMARY KEY (id);"
                         " CREATE TABLE demo_sum (key bigint PRIMARY KEY, state text, result jsonb,"
                         " error text, ended_at timestamptz)",
                         &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t start_us = wait_now_us();
    (void)printf("\nclaimctl map --sql '" QUERY
                 "' --concurrency 4 --into demo_sum -- " CLUSTER_MD5SUM " -- {path}\n");
    (void)fflush(stdout);
    st = cluster_ctl(c, map, &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    ret->seconds = (double)(wait_now_us() - start_us) / (double)US_PER_S;
    return compare(c, ret, err);
}
