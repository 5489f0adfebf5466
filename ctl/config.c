/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "config/manual.h"
#include "config/options.h"
#include "ctl/ctl.h"
#include "ctl/table.h"
#include "redis/redis.h"

#define MANUAL_MAX ((size_t)1 << 20)

static enum status check_nodes(const char *name, char (*nodes)[CONFIG_TEXT_MAX], size_t count,
                               struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct redis_endpoint endpoint;
        enum status st = redis_endpoint_parse(nodes[i], &endpoint, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%s, item %zu", name, i + 1);
            return st;
        }
    }
    return STATUS_OK;
}

/* What is allowed and yet seldom meant; NULL = nothing. */
static const char *node_warning(const struct config *config)
{
    return config->lock.node_count == 0 ? "lock.nodes is empty: workers and schedulers need 1 to 9"
           : config->lock.node_count % 2 == 0
               ? "lock.nodes: an even number tolerates no more failures than one node less"
               : NULL;
}

enum status config_check(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"result", CELL_TEXT}, {"warning", CELL_TEXT}};
    auto_table struct table table = TABLE("configuration", columns);
    struct config config;
    if (args->word_count > 0) {
        ctl->config_path = args->words[0];
    }
    char conninfo[2 * CONFIG_PATH_MAX];
    enum status st = ctl_load_config(ctl, &config, err);
    if (st == STATUS_OK) {
        st = ctl_conninfo(&config, conninfo, sizeof conninfo, err);
        explicit_bzero(conninfo, sizeof conninfo);
    }
    if (st == STATUS_OK) {
        st = check_nodes("lock.nodes", config.lock.nodes, config.lock.node_count, err);
    }
    if (st == STATUS_OK) {
        st = check_nodes("hints.nodes", config.hints.nodes, config.hints.node_count, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    const char *const values[] = {"ok", node_warning(&config)};
    if (!ctl->is_json) {
        if (values[1] != NULL) {
            (void)fprintf(stderr, "warning: %s\n", values[1]);
        }
        (void)fprintf(ctl->out, "ok\n");
        return STATUS_OK;
    }
    const struct table *const tables[] = {&table};
    table.is_record = true;
    st = table_add(&table, values, err);
    return st == STATUS_OK ? tables_print(tables, 1, true, ctl->out, err) : st;
}

static enum status print_keys(const struct ctl *ctl, struct err *err)
{
    static const struct table_column columns[] = {{"key", CELL_TEXT},
                                                  {"environment", CELL_TEXT},
                                                  {"default", CELL_TEXT},
                                                  {"allowed", CELL_TEXT},
                                                  {"help", CELL_TEXT}};
    auto_table struct table table = TABLE("keys", columns);
    const struct table *const tables[] = {&table};
    enum status st = STATUS_OK;
    for (size_t i = 0; st == STATUS_OK && i < config_option_count; i++) {
        const struct option_def *o = &config_options[i];
        char env[96];
        char range[128];
        (void)option_env_name(o, env, sizeof env);
        option_range_text(o, range, sizeof range);
        st = table_add(&table, (const char *const[]){o->name, env, o->default_text, range, o->help},
                       err);
    }
    return st == STATUS_OK ? tables_print(tables, 1, true, ctl->out, err) : st;
}

enum status config_doc(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    if (ctl->is_json) {
        return print_keys(ctl, err);
    }
    autobuf struct buf manual = BUF_INIT(MANUAL_MAX);
    enum status st = config_manual(&manual, err);
    if (st == STATUS_OK && fwrite(buf_at(&manual), 1, manual.len, ctl->out) != manual.len) {
        st = err_fail_sys(err, STATUS_INTERNAL, errno, "cannot write");
    }
    return st;
}
