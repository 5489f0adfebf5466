/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "config/config.h"
#include "config/manual.h"
#include "config/options.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define FIVE_NODES "\"lock\": {\"nodes\": [\"a:1\", \"b:1\", \"c:1\", \"d:1\", \"e:1\"]}"

struct files {
    char dir[96];
    char config[128];
    char secret[128];
};

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void files_make(struct files *f)
{
    (void)snprintf(f->dir, sizeof f->dir, "%s/config-XXXXXX", suite_tmp());
    ck_assert_ptr_nonnull(mkdtemp(f->dir));
    (void)snprintf(f->config, sizeof f->config, "%s/claimd.json", f->dir);
    (void)snprintf(f->secret, sizeof f->secret, "%s/secret", f->dir);
}

static void files_remove(const struct files *f)
{
    (void)unlink(f->config);
    (void)unlink(f->secret);
    (void)rmdir(f->dir);
}

/* Loads `text` from a file. */
static enum status load(const char *text, struct config *ret, struct err *err)
{
    struct files f;
    files_make(&f);
    write_file(f.config, text);
    enum status st = config_load(f.config, ret, err);
    files_remove(&f);
    return st;
}

static void refused(const char *text, const char *reason)
{
    struct config c;
    struct err err = {0};
    ck_assert_int_eq(load(text, &c, &err), STATUS_INVALID);
    ck_assert_msg(strstr(err.msg, reason) != NULL, "got: %s\nwanted: %s", err.msg, reason);
}

START_TEST(defaults_are_the_numbers_of_the_manual)
{
    struct config c;
    struct err err = {0};
    ck_assert_int_eq(config_load(NULL, &c, &err), STATUS_OK);
    ck_assert_int_eq(c.lock.ttl_us, 10000000);
    ck_assert_int_eq(c.lock.node_timeout_us, 100000);
    ck_assert_int_eq(c.lock.drift_ppm, 10000);
    ck_assert(!c.lock.trust_fresh);
    ck_assert_int_eq(c.worker.batch_max, 500);
    ck_assert_int_eq(c.worker.stale_us, 8000000);
    ck_assert_uint_eq(c.worker.queue_count, 1);
    ck_assert_str_eq(c.worker.queues[0], "default");
    ck_assert_str_eq(c.redis.prefix, "claimd");
    ck_assert_int_eq(c.log_level, LOG_INFO);
    ck_assert_int_eq(c.scheduler.history_days, 14);
}
END_TEST

START_TEST(a_file_wins_over_defaults_and_hints_use_the_lock_nodes)
{
    struct config c;
    struct err err = {0};
    ck_assert_int_eq(load("{" FIVE_NODES ", \"log_level\": \"debug\","
                          " \"worker\": {\"queues\": [\"a\", \"b.c-d\"], \"slots\": 7}}",
                          &c, &err),
                     STATUS_OK);
    ck_assert_uint_eq(c.lock.node_count, 5);
    ck_assert_uint_eq(c.hints.node_count, 5);
    ck_assert_str_eq(c.hints.nodes[4], "e:1");
    ck_assert_uint_eq(c.worker.queue_count, 2);
    ck_assert_str_eq(c.worker.queues[1], "b.c-d");
    ck_assert_int_eq(c.worker.slots, 7);
    ck_assert_int_eq(c.log_level, LOG_DEBUG);
}
END_TEST

START_TEST(the_environment_wins_over_the_file)
{
    struct config c;
    struct err err = {0};
    ck_assert_int_eq(setenv("CLAIMD_LOCK_NODES", "x:1,y:2", 1), 0);
    ck_assert_int_eq(setenv("CLAIMD_LOCK_FRESH_NODES", "trust", 1), 0);
    ck_assert_int_eq(setenv("CLAIMD_WORKER_SLOTS", "3", 1), 0);
    ck_assert_int_eq(load("{" FIVE_NODES ", \"worker\": {\"slots\": 7}}", &c, &err), STATUS_OK);
    ck_assert_uint_eq(c.lock.node_count, 2);
    ck_assert_str_eq(c.lock.nodes[1], "y:2");
    ck_assert(c.lock.trust_fresh);
    ck_assert_int_eq(c.worker.slots, 3);
}
END_TEST

START_TEST(a_bad_variable_is_refused_by_its_name)
{
    struct config c;
    struct err err = {0};
    ck_assert_int_eq(setenv("CLAIMD_LOCK_TTL_MS", "10s", 1), 0);
    ck_assert_int_eq(config_load(NULL, &c, &err), STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "environment CLAIMD_LOCK_TTL_MS: lock.ttl_ms: 10s is "
                                          "not allowed; allowed: 1000 to 3600000 ms"));
}
END_TEST

/* A misspelled section or key, and a variable that is nearly one of ours. */
static const char *const mistyped[][2] = {
    {"CLAIMD_LOCK_TTL", "CLAIMD_LOCK_TTL: no such key; did you mean CLAIMD_LOCK_TTL_MS?"},
    {"CLAIMD_LOGLEVEL", "CLAIMD_LOGLEVEL: no such key; did you mean CLAIMD_LOG_LEVEL?"},
    {"CLAIMD_WORKER_SLOT", "did you mean CLAIMD_WORKER_SLOTS?"},
    {"CLAIMD_WORKERS_SLOTS", "did you mean CLAIMD_WORKER_SLOTS?"},
    {"CLAIMD_POSTGRES_PASSWORD", "did you mean CLAIMD_POSTGRES_PASSWORD_FILE?"},
};

START_TEST(a_mistyped_variable_is_refused_with_the_nearest_name)
{
    struct config c;
    struct err err = {0};
    ck_assert_int_eq(setenv(mistyped[_i][0], "canary", 1), 0);
    ck_assert_int_eq(setenv("CLAIMD_BIN_DIR", "not ours", 1), 0);
    ck_assert_int_eq(config_load(NULL, &c, &err), STATUS_INVALID);
    ck_assert_msg(strstr(err.msg, mistyped[_i][1]) != NULL, "%s", err.msg);
    ck_assert_ptr_null(strstr(err.msg, "canary"));
}
END_TEST

START_TEST(variables_that_are_no_keys_are_left_alone)
{
    struct config c;
    struct err err = {0};
    static const char *const names[] = {"CLAIMD_CONFIG",  "CLAIMD_PROBE", "CLAIMD_PLUGIN_DIR",
                                        "CLAIMD_HISTORY", "CLAIMD_BUG",   "CLAIMD_REQUIRE_SERVICES",
                                        "CLAIMD_IMAGE"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        ck_assert_int_eq(setenv(names[i], "x", 1), 0);
    }
    ck_assert_msg(config_load(NULL, &c, &err) == STATUS_OK, "%s", err.msg);
}
END_TEST

START_TEST(times_are_scaled_once_but_for_those_of_servers)
{
    struct config c;
    struct err err = {0};
    ck_assert_int_eq(load("{\"time_scale\": 0.1, \"lock\": {\"node_timeout_ms\": 300}}", &c, &err),
                     STATUS_OK);
    ck_assert_int_eq(c.lock.ttl_us, 1000000);
    ck_assert_int_eq(c.lock.node_timeout_us, 300000);
    ck_assert_int_eq(c.worker.beat_us, 200000);
    ck_assert_int_eq(c.scheduler.full_pass_us, 3000000);
    ck_assert_int_eq(c.postgres.timeout_us, 5000000);
    ck_assert_int_eq(c.postgres.lock_timeout_ms, 200);
}
END_TEST

/* The text and the expected reason, for each kind of mistake. */
static const struct {
    const char *text;
    const char *reason;
} refusals[] = {
    {"{", "line 1: "},
    {"{\"log_level\": \"info\", \"log_level\": \"info\"}", "duplicate object key"},
    {"[]", "an array is not allowed; allowed: an object"},
    {"{\"nodes\": 5}",
     "nodes: unknown key; known here: time_scale, log_level, log_format, host, postgres"},
    {"{\"worker\": {\"slotz\": 5}}", "; did you mean 'slots'?"},
    {"{\"lock\": {\"ttl\": 5}}", "lock.ttl: unknown key; known here: nodes, ttl_ms, node_timeout"},
    {"{\"lock.ttl_ms\": 10000}", "lock.ttl_ms: unknown key"},
    {"{\"lock\": 5}", "lock: 5 is not allowed; allowed: an object"},
    {"{\"lock\": {\"ttl_ms\": \"5\"}}",
     "lock.ttl_ms: \"5\" is not allowed; allowed: 1000 to 3600000 ms, a number without quotes"},
    {"{\"lock\": {\"ttl_ms\": 5}}", "lock.ttl_ms: 5 is not allowed; allowed: 1000 to 3600000 ms"},
    {"{\"lock\": {\"ttl_ms\": 2000.5}}", "lock.ttl_ms: 2000.5 is not allowed"},
    {"{\"lock\": {\"fresh_nodes\": \"yes\"}}", "yes is not allowed; allowed: quarantine or trust"},
    {"{\"lock\": {\"nodes\": \"a:1\"}}",
     "lock.nodes: \"a:1\" is not allowed; allowed: 0 to 9 texts of at most 255 bytes, in an array"},
    {"{\"lock\": {\"nodes\": [1]}}", "lock.nodes: 1 is not allowed"},
    {"{\"lock\": {\"nodes\": [\"a:1\", \"a:1\"]}}", "lock.nodes: 'a:1' is listed twice"},
    {"{\"lock\": {\"nodes\": [\"\"]}}", "lock.nodes: an empty text is not allowed"},
    {"{\"worker\": {\"queues\": []}}", "worker.queues: an empty list is not allowed; allowed: 1"},
    {"{\"worker\": {\"queues\": [\"No\"]}}", "worker.queues: "},
    {"{\"worker\": {\"commands\": []}}",
     "worker.commands: this is not allowed; allowed: an object of at most 64 commands"},
    {"{\"worker\": {\"commands\": {\"A b\": [\"/x\"]}}}",
     "worker.commands: the name 'A b' is not allowed; allowed: lower-case letters"},
    {"{\"worker\": {\"commands\": {\"a\": []}}}", "worker.commands.a: must be a list"},
    {"{\"worker\": {\"commands\": {\"a\": \"/x\"}}}", "worker.commands.a: must be a list"},
    {"{\"worker\": {\"commands\": {\"a\": [\"x\"]}}}",
     "worker.commands.a[0]: must be the program's absolute path"},
    {"{\"worker\": {\"commands\": {\"a\": [\"/x\", 1]}}}", "worker.commands.a[1]: must be a text"},
    {"{\"worker\": {\"slots\": null}}", "worker.slots: null is not allowed; allowed: 0 to 1024"},
    {"{\"worker\": {\"slots\": true}}", "worker.slots: true is not allowed"},
    {"{\"worker\": {\"slots\": [1]}}", "worker.slots: an array is not allowed"},
    {"{\"time_scale\": 0}", "time_scale: 0 is not allowed; allowed: 0.001 to 10"},
    {"{\"redis\": {\"prefix\": \"\"}}", "redis.prefix: an empty text is not allowed"},
    {"{\"redis\": {\"prefix\": \"a b\"}}", "redis.prefix: 'a b' is not allowed"},
    {"{\"lock\": {\"node_timeout_ms\": 2000}}", "lock.ttl_ms: 10000 is not allowed; allowed: at "
                                                "least 10 × lock.node_timeout_ms (20000)"},
    {"{\"lock\": {\"guard_ms\": 9500}}", "lock.guard_ms: 9500 is not allowed; allowed: with"},
    {"{\"lock\": {\"kill_margin_ms\": 2000}}", "less than lock.guard_ms (2000)"},
    {"{\"worker\": {\"pop_block_ms\": 8000}}", "less than worker.stale_ms (8000)"},
    {"{\"worker\": {\"beat_ms\": 3000}}", "at least 3 × worker.beat_ms (9000)"},
    {"{\"scheduler\": {\"lead_try_ms\": 5000}}", "less than scheduler.lead_ttl_ms (5000)"},
    {"{\"redis\": {\"password_file\": \"/nowhere/x\"}}", "redis.password_file: cannot read '/now"},
    {"{\"postgres\": {\"conninfo\": \"host=a password=b\"}}", "a password is not allowed here"},
    {"{\"postgres\": {\"conninfo\": \"postgresql://u:p@h/d\"}}", "a password is not allowed here"},
    {"{\"postgres\": {\"conninfo\": \"sslpassword=b\"}}", "a password is not allowed here"},
    {"{\"postgres\": {\"conninfo\": \"user=x_password\\tpassword = b\"}}", "not allowed here"},
    {"{\"lock\": {\"nodes\": [\"redis://u:p@h\", \"redis://u:p@h\"]}}",
     "lock.nodes: 'redis://u:***@h' is listed twice"},
    {"{\"log_level\": \"redis://u:p/@x@h\"}", "log_level: redis://u:***@h is not allowed"},
    {"{\"log_level\": \"info\",\n}", "line 2: "},
    {"\xEF\xBB\xBF{}", "line 1: "},
    {"{// why\n}", "line 1: "},
};

START_TEST(a_bad_file_is_refused_with_place_value_and_range)
{
    refused(refusals[_i].text, refusals[_i].reason);
}
END_TEST

START_TEST(a_folder_is_no_file)
{
    struct config c;
    struct err err = {0};
    ck_assert_int_eq(config_load("/", &c, &err), STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "Is a directory"));
}
END_TEST

START_TEST(plugins_are_found_beside_the_program)
{
    struct config c;
    struct err err = {0};
    char wanted[CONFIG_PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", wanted, sizeof wanted);
    ck_assert_int_gt(len, 0);
    for (int up = 0; up < 2; up++) {
        len = (char *)memrchr(wanted, '/', (size_t)len) - wanted;
    }
    ck_assert_int_lt(snprintf(wanted + len, sizeof wanted - (size_t)len, "/lib/claimd/plugins"),
                     (int)sizeof wanted - (int)len);
    ck_assert_int_eq(config_load(NULL, &c, &err), STATUS_OK);
    ck_assert_str_eq(c.worker.plugin_dir, wanted);
}
END_TEST

START_TEST(a_missing_file_is_not_found)
{
    struct config c;
    struct err err = {0};
    ck_assert_int_eq(config_load("/nowhere/claimd.json", &c, &err), STATUS_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.msg, "/nowhere/claimd.json"));
}
END_TEST

static void load_secret(const char *secret, enum status expected, struct config *ret,
                        struct err *err)
{
    struct files f;
    files_make(&f);
    write_file(f.secret, secret);
    write_file(f.config,
               "{\"postgres\": {\"conninfo\": \"host=db\", \"password_file\": \"secret\"}}");
    ck_assert_int_eq(config_load(f.config, ret, err), expected);
    files_remove(&f);
}

START_TEST(a_secret_is_read_beside_the_file_without_its_newline)
{
    struct config c;
    struct err err = {0};
    load_secret("it's a \\secret\n", STATUS_OK, &c, &err);
    ck_assert_str_eq(c.postgres.password, "it's a \\secret");
    char conninfo[200];
    ck_assert_int_eq(config_conninfo(&c, conninfo, sizeof conninfo, &err), STATUS_OK);
    ck_assert_str_eq(conninfo, "host=db password='it\\'s a \\\\secret'");
    (void)snprintf(c.postgres.conninfo, sizeof c.postgres.conninfo, "postgresql://u@db/x");
    ck_assert_int_eq(config_conninfo(&c, conninfo, sizeof conninfo, &err), STATUS_OK);
    ck_assert_str_eq(conninfo, "postgresql://u@db/x?password=it%27s%20a%20%5Csecret");
    ck_assert_int_eq(config_conninfo(&c, conninfo, 20, &err), STATUS_LIMIT);
}
END_TEST

START_TEST(a_secret_without_a_path_is_systemds_credential)
{
    struct config c;
    struct err err = {0};
    struct files f;
    char credential[128];
    files_make(&f);
    (void)snprintf(credential, sizeof credential, "%s/claimd_redis_password", f.dir);
    write_file(credential, "from systemd\n");
    write_file(f.secret, "from the file\n");
    write_file(f.config, "{\"postgres\": {\"password_file\": \"secret\"}}");
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", f.dir, 1), 0);
    ck_assert_int_eq(config_load(NULL, &c, &err), STATUS_OK);
    ck_assert_str_eq(c.redis.password, "from systemd");
    ck_assert_str_eq(c.postgres.password, ""); /* a missing credential is not an error */
    (void)snprintf(credential, sizeof credential, "%s/claimd_postgres_password", f.dir);
    write_file(credential, "from systemd, too");
    ck_assert_int_eq(config_load(f.config, &c, &err), STATUS_OK);
    ck_assert_str_eq(c.postgres.password, "from the file");
    (void)unlink(credential);
    (void)snprintf(credential, sizeof credential, "%s/claimd_redis_password", f.dir);
    (void)unlink(credential);
    files_remove(&f);
}
END_TEST

START_TEST(an_empty_secret_is_refused)
{
    struct config c;
    struct err err = {0};
    load_secret("\n", STATUS_INVALID, &c, &err);
    ck_assert_ptr_nonnull(strstr(err.msg, "is not a secret"));
}
END_TEST

START_TEST(every_key_is_in_the_manual)
{
    autobuf struct buf out = BUF_INIT(1 << 20);
    struct err err = {0};
    ck_assert_int_eq(config_manual(&out, &err), STATUS_OK);
    for (size_t i = 0; i < config_option_count; i++) {
        ck_assert_ptr_nonnull(strstr(buf_at(&out), config_options[i].name));
    }
}
END_TEST

START_TEST(docs_config_md_is_what_the_table_says)
{
    const char *source = getenv("CLAIMD_SOURCE_DIR");
    if (source == NULL) {
        return;
    }
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/docs/config.md", source);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "no %s", path);
    autobuf struct buf wanted = BUF_INIT(1 << 20);
    autobuf struct buf found = BUF_INIT(1 << 20);
    struct err err = {0};
    ck_assert_int_eq(config_manual(&wanted, &err), STATUS_OK);
    ck_assert_int_eq(buf_reserve(&found, 1 << 17, &err), STATUS_OK);
    ssize_t n = read(fd, buf_at(&found), 1 << 17);
    ck_assert_int_ge(n, 0);
    buf_grew(&found, (size_t)n);
    ck_assert_msg(strcmp(buf_at(&found), buf_at(&wanted)) == 0,
                  "run: claimctl config doc > docs/config.md");
}
END_TEST

/* ---- reload ---- */

static const char OLD_TEXT[] =
    "{" FIVE_NODES ", \"time_scale\": 0.5, \"worker\": {\"drain_ms\": 1000, \"slots\": 2}}";

/* Reloads: `new_text` replaces the running OLD_TEXT. */
static enum status reload(const char *new_text, struct config *ret, struct config_changes *changes,
                          struct err *err)
{
    struct config old;
    struct files f;
    files_make(&f);
    ck_assert_int_eq(load(OLD_TEXT, &old, err), STATUS_OK);
    write_file(f.config, new_text);
    enum status st = config_reload(f.config, &old, ret, changes, err);
    files_remove(&f);
    return st;
}

START_TEST(a_reload_without_a_change_changes_nothing)
{
    struct config c;
    struct config_changes changes;
    struct err err = {0};
    ck_assert_int_eq(reload(OLD_TEXT, &c, &changes, &err), STATUS_OK);
    ck_assert_str_eq(changes.taken, "");
    ck_assert_str_eq(changes.needs_restart, "");
    ck_assert_int_eq(c.worker.drain_us, 500000);
    ck_assert_uint_eq(c.hints.node_count, 5);
}
END_TEST

START_TEST(a_reload_takes_on_what_it_may_and_names_the_rest)
{
    struct config c;
    struct config_changes changes;
    struct err err = {0};
    ck_assert_int_eq(reload("{\"lock\": {\"nodes\": [\"a:1\"]}, \"log_level\": \"debug\","
                            " \"worker\": {\"drain_ms\": 3000, \"slots\": 3}}",
                            &c, &changes, &err),
                     STATUS_OK);
    ck_assert_str_eq(changes.taken, "log_level, worker.drain_ms");
    ck_assert_str_eq(changes.needs_restart, "time_scale, lock.nodes, hints.nodes, worker.slots");
    ck_assert_int_eq(c.log_level, LOG_DEBUG);
    ck_assert_int_eq(c.worker.drain_us, 1500000); /* still with the old scale */
    ck_assert_int_eq(c.worker.slots, 2);
    ck_assert_uint_eq(c.lock.node_count, 5);
    ck_assert_str_eq(c.lock.nodes[4], "e:1");
}
END_TEST

START_TEST(a_reload_of_a_bad_file_is_refused)
{
    struct config c;
    struct config_changes changes;
    struct err err = {0};
    ck_assert_int_eq(reload("{\"worker\": {\"slots\": -1}}", &c, &changes, &err), STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "worker.slots: -1 is not allowed"));
}
END_TEST

/* The new secret is used for Redis, but not for PostgreSQL, whose sessions have their own
 * conninfo. */
START_TEST(a_new_secret_in_the_same_file_is_seen)
{
    struct config old;
    struct config c;
    struct config_changes changes;
    struct files f;
    struct err err = {0};
    files_make(&f);
    write_file(f.config, "{\"redis\": {\"password_file\": \"secret\"},"
                         " \"postgres\": {\"password_file\": \"secret\"}}");
    write_file(f.secret, "old\n");
    ck_assert_int_eq(config_load(f.config, &old, &err), STATUS_OK);
    write_file(f.secret, "new\n");
    ck_assert_int_eq(config_reload(f.config, &old, &c, &changes, &err), STATUS_OK);
    files_remove(&f);
    ck_assert_str_eq(changes.taken, "redis.password_file");
    ck_assert_str_eq(changes.needs_restart, "postgres.password_file");
    ck_assert_str_eq(c.redis.password, "new");
    ck_assert_str_eq(c.postgres.password, "old");
}
END_TEST

START_TEST(the_example_loads)
{
    const char *source = getenv("CLAIMD_SOURCE_DIR");
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/config/dev.json", source == NULL ? "." : source);
    struct config c;
    struct err err = {0};
    ck_assert_msg(config_load(path, &c, &err) == STATUS_OK, "%s", err.msg);
    ck_assert_uint_eq(c.lock.node_count, 5);
}
END_TEST

START_TEST(addresses_to_listen_on_are_parted)
{
    static const struct {
        const char *text;
        const char *host;
        const char *port;
    } good[] = {{"127.0.0.1:8422", "127.0.0.1", "8422"},
                {"[::1]:0", "::1", "0"},
                {"worker-7.example:65535", "worker-7.example", "65535"}};
    struct config_listen l;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_int_eq(config_listen("k", good[i].text, &l, NULL), STATUS_OK);
        ck_assert(!l.is_off);
        ck_assert_str_eq(l.host, good[i].host);
        ck_assert_str_eq(l.port, good[i].port);
    }
    ck_assert_int_eq(config_listen("k", "", &l, NULL), STATUS_OK);
    ck_assert(l.is_off);
}
END_TEST

START_TEST(addresses_that_are_none_are_refused_with_key_and_form)
{
    static const char *const bad[] = {
        "8422",      ":8422",    "localhost",  "localhost:", "localhost:x", "localhost:65536",
        "[::1]8422", "::1:8422", "http://x:1", "host:-1",    "[]:1",        " :1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct config_listen l;
        struct err err = {0};
        ck_assert_msg(config_listen("worker.http_listen", bad[i], &l, &err) == STATUS_INVALID, "%s",
                      bad[i]);
    }
    refused("{\"scheduler\": {\"http_listen\": \"8421\"}}",
            "scheduler.http_listen: '8421' is not allowed; allowed: host:port");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tests = tcase_create("config");
    tcase_add_test(tests, defaults_are_the_numbers_of_the_manual);
    tcase_add_test(tests, a_file_wins_over_defaults_and_hints_use_the_lock_nodes);
    tcase_add_test(tests, the_environment_wins_over_the_file);
    tcase_add_test(tests, a_bad_variable_is_refused_by_its_name);
    tcase_add_loop_test(tests, a_mistyped_variable_is_refused_with_the_nearest_name, 0,
                        ARRAY_COUNT(mistyped));
    tcase_add_test(tests, variables_that_are_no_keys_are_left_alone);
    tcase_add_test(tests, times_are_scaled_once_but_for_those_of_servers);
    tcase_add_loop_test(tests, a_bad_file_is_refused_with_place_value_and_range, 0,
                        ARRAY_COUNT(refusals));
    tcase_add_test(tests, a_folder_is_no_file);
    tcase_add_test(tests, plugins_are_found_beside_the_program);
    tcase_add_test(tests, a_missing_file_is_not_found);
    tcase_add_test(tests, a_secret_is_read_beside_the_file_without_its_newline);
    tcase_add_test(tests, a_secret_without_a_path_is_systemds_credential);
    tcase_add_test(tests, an_empty_secret_is_refused);
    tcase_add_test(tests, every_key_is_in_the_manual);
    tcase_add_test(tests, docs_config_md_is_what_the_table_says);
    tcase_add_test(tests, the_example_loads);
    tcase_add_test(tests, a_reload_without_a_change_changes_nothing);
    tcase_add_test(tests, a_reload_takes_on_what_it_may_and_names_the_rest);
    tcase_add_test(tests, a_reload_of_a_bad_file_is_refused);
    tcase_add_test(tests, a_new_secret_in_the_same_file_is_seen);
    tcase_add_test(tests, addresses_to_listen_on_are_parted);
    tcase_add_test(tests, addresses_that_are_none_are_refused_with_key_and_form);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
