/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl config: check, show, schema, doc. */
#include "base/buf.h"
#include "config/dump.h"
#include "config/manual.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "redis/redis.h"

#include <sys/stat.h>

#define MANUAL_MAX ((size_t)1 << 20)

static bool is_open(const char *path)
{
    struct stat info;
    return path[0] != '\0' && stat(path, &info) == 0 && (info.st_mode & S_IROTH) != 0;
}

/* Returns a warning about a setting that is valid but probably unintended; NULL = none. */
static const char *warning_about(const struct config *config)
{
    if (is_open(config->postgres.password_file) || is_open(config->redis.password_file)) {
        return "a password file can be read by every user of this host: chmod o-r";
    }
    return config->lock.node_count == 0 ? "lock.nodes is empty: workers and schedulers need 1 to 9"
           : config->lock.node_count % 2 == 0
               ? "lock.nodes: an even number tolerates no more failures than one node less"
               : NULL;
}

enum status config_check(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"result", CELL_TEXT}, {"warning", CELL_TEXT}};
    struct config config;
    if (args->word_count > 0) {
        ctl->config_path = args->words[0];
    }
    char conninfo[2 * CONFIG_PATH_MAX];
    enum status st = ctl_load_config(ctl, &config, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_conninfo(&config, conninfo, sizeof conninfo, err);
    explicit_bzero(conninfo, sizeof conninfo);
    if (st != STATUS_OK) {
        return st;
    }
    st = redis_endpoint_check_list("lock.nodes", config.lock.nodes[0], CONFIG_TEXT_MAX,
                                   config.lock.node_count, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = redis_endpoint_check_list("hints.nodes", config.hints.nodes[0], CONFIG_TEXT_MAX,
                                   config.hints.node_count, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const values[] = {"ok", warning_about(&config)};
    if (!ctl->is_json) {
        if (values[1] != NULL) {
            (void)fprintf(stderr, "warning: %s\n", values[1]);
        }
        (void)fprintf(ctl->out, "ok\n");
        return STATUS_OK;
    }
    return PRINT_RECORD(ctl, "configuration", columns, values, err);
}

static enum status print_buf(const struct ctl *ctl, const struct buf *text, struct err *err)
{
    return fwrite(buf_at(text), 1, text->len, ctl->out) == text->len
               ? STATUS_OK
               : err_fail_sys(err, STATUS_INTERNAL, errno, "cannot write");
}

static enum status print_origins(const struct ctl *ctl, const char *path,
                                 const struct config *config, bool *masked, struct err *err)
{
    static const struct table_column read_columns[] = {{"file", CELL_TEXT}};
    static const char *const origins[] = {"default", "file", "environment"};
    static const struct table_column columns[] = {
        {"key", CELL_TEXT}, {"value", CELL_JSON | CELL_LIST}, {"origin", CELL_TEXT}};
    auto_table struct table table = TABLE("keys", columns);
    auto_table struct table read = TABLE("read", read_columns);
    const struct table *const tables[] = {&read, &table};
    read.is_record = true;
    enum status st = table_add(&read, &path, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < config_option_count; i++) {
        const struct option_def *o = &config_options[i];
        json_auto_t *value = config_value(o, config, masked);
        autofree char *text =
            value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        if (text == NULL) {
            return err_fail(err, STATUS_NOMEM, "%s", o->name);
        }
        st = table_add(&table, (const char *const[]){o->name, text, origins[config->origins[i]]},
                       err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return tables_print(tables, 2, ctl->is_json, ctl->out, err);
}

static enum status print_dump(const struct ctl *ctl, const struct config *config, bool *masked,
                              struct err *err)
{
    autobuf struct buf out = BUF_INIT(MANUAL_MAX);
    enum status st = config_dump(config, &out, masked, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_buf(ctl, &out, err);
}

enum status config_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct config config;
    bool is_masked = false;
    const char *path = args->word_count > 0 ? args->words[0] : ctl->config_path;
    enum status st = config_read(path, &config, err);
    if (st != STATUS_OK) {
        return st == STATUS_NOT_FOUND ? STATUS_INVALID : st;
    }
    st = ctl_value(args, "origin") != NULL ? print_origins(ctl, path, &config, &is_masked, err)
                                           : print_dump(ctl, &config, &is_masked, err);
    explicit_bzero(&config, sizeof config);
    if (st != STATUS_OK) {
        return st;
    }
    if (is_masked) {
        (void)fprintf(
            stderr,
            "warning: a password in a URL is shown as ***; use redis.password_file instead\n");
    }
    return STATUS_OK;
}

enum status config_print_schema(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    autobuf struct buf out = BUF_INIT(MANUAL_MAX);
    enum status st = config_schema(&out, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_buf(ctl, &out, err);
}

static enum status print_keys(const struct ctl *ctl, struct err *err)
{
    static const struct table_column columns[] = {{"key", CELL_TEXT},
                                                  {"environment", CELL_TEXT},
                                                  {"default", CELL_TEXT},
                                                  {"allowed", CELL_TEXT},
                                                  {"help", CELL_TEXT}};
    auto_table struct table table = TABLE("keys", columns);
    for (size_t i = 0; i < config_option_count; i++) {
        const struct option_def *o = &config_options[i];
        char env[96];
        char range[128];
        (void)option_env_name(o, env, sizeof env);
        option_range_text(o, range, sizeof range);
        enum status st = table_add(
            &table, (const char *const[]){o->name, env, o->default_text, range, o->help}, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return table_print(&table, true, ctl->out, err);
}

enum status config_doc(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    if (ctl->is_json) {
        return print_keys(ctl, err);
    }
    autobuf struct buf manual = BUF_INIT(MANUAL_MAX);
    enum status st = config_manual(&manual, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_buf(ctl, &manual, err);
}
