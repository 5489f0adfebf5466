/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers and daemons of claimctl dev. */
#include "ctl/commands/dev/dev.h"
#include "ctl/core/ctl.h"
#include "sql/queries.h"
#include "store/migrate.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/file.h>
#include <sys/stat.h>

#define ANY_PORT "127.0.0.1:0" /* the ready line names the port */
#define TIMEOUT_US (INT64_C(10) * 1000000)

static bool is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    size_t count = 0;
    while (d != NULL && count <= 2 && readdir(d) != NULL) { /* . and .. */
        count++;
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return d != NULL && count <= 2;
}

/* Makes the folder, or accepts one that we made earlier. The servers' user becomes its owner, and
 * its contents are trusted. */
static enum status make_folder(const char *dir, const char *lock_path, struct err *err)
{
    struct stat info;
    if (mkdir(dir, 0755) == 0) {
        return STATUS_OK;
    }
    if (errno != EEXIST) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot make '%s'", dir);
    }
    if (!dir_is_ours(dir)) {
        return err_fail(err, STATUS_INVALID, "'%s' is not your folder: choose another with --dir",
                        dir);
    }
    if (lstat(lock_path, &info) != 0 ? !is_empty(dir) : !S_ISREG(info.st_mode)) {
        return err_fail(err, STATUS_INVALID,
                        "'%s' holds other files: --dir needs a folder of its own", dir);
    }
    return STATUS_OK;
}

static enum status lock_folder(struct dev_cluster *d, struct err *err)
{
    char path[DEV_DIR_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/dev.lock", d->dir);
    enum status st = make_folder(d->dir, path, err);
    if (st != STATUS_OK) {
        return st;
    }
    d->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (d->lock_fd < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot write '%s'", path);
    }
    if (flock(d->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        return err_fail(err, STATUS_CONFLICT, "another claimctl dev runs in '%s'", d->dir);
    }
    return STATUS_OK;
}

static enum status has_database(const struct dev_cluster *d, bool *ret_has, struct err *err)
{
    const char *const params[] = {d->database};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_open(d->pg.conninfo, TIMEOUT_US, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(a, &SQL_ADMIN_DATABASE, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_has = strcmp(admin_value(rows, 0, 0), "0") != 0;
    return STATUS_OK;
}

static enum status start_postgres(struct dev_cluster *d, char *ret_conninfo, size_t size,
                                  struct err *err)
{
    bool has = false;
    /* In the folder itself, so that the servers' user, who also starts the workers, becomes its
     * owner. */
    enum status st = pg_server_start(d->dir, true, &d->pg, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = has_database(d, &has, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (has) {
        (void)snprintf(ret_conninfo, size, "host=%s port=5432 user=postgres dbname=%s", d->dir,
                       d->database);
    } else {
        st = pg_server_create_db(&d->pg, d->database, NULL, ret_conninfo, size, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return migrate_up(ret_conninfo, TIMEOUT_US, NULL, NULL, err);
}

static enum status start_masters(struct dev_cluster *d, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        char dir[DEV_DIR_MAX + 32];
        (void)snprintf(dir, sizeof dir, "%s/redis-%zu", d->dir, i + 1);
        enum status st = redis_server_start(dir, NULL, &d->masters[i], err);
        if (st != STATUS_OK) {
            return st;
        }
        d->master_count = i + 1;
    }
    return STATUS_OK;
}

static enum status write_config(struct dev_cluster *d, const char *conninfo, struct err *err)
{
    json_auto_t *nodes = json_array();
    bool ok = nodes != NULL;
    for (size_t i = 0; ok && i < d->master_count; i++) {
        ok = json_array_append_new(nodes, json_sprintf("unix:%s", d->masters[i].path)) == 0;
    }
    json_auto_t *root =
        !ok ? NULL
            : json_pack("{s: {s: s}, s: {s: O, s: s}, s: {s: s, s: s, s: s, s: s}, s: {s: s}}",
                        "postgres", "conninfo", conninfo, "lock", "nodes", nodes, "fresh_nodes",
                        "trust", "worker", "plugin_dir", d->plugins, "handlers", d->handlers,
                        "state_dir", "worker", "http_listen", ANY_PORT, "scheduler", "http_listen",
                        ANY_PORT);
    if (root == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    if (d->web_listen[0] != '\0') {
        (void)json_object_set_new(root, "web",
                                  json_pack("{s: s, s: s, s: s}", "listen", d->web_listen, "mode",
                                            "operate", "tokens_file", "tokens"));
    }
    if (json_dump_file(root, d->config_path, JSON_INDENT(4)) != 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot write '%s'", d->config_path);
    }
    return STATUS_OK;
}

enum status dev_start_servers(struct dev_cluster *d, size_t masters, bool is_usual, struct err *err)
{
    char conninfo[SERVER_PATH_MAX];
    dir_sweep();
    enum status st = lock_folder(d, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = dev_lower(d, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = start_postgres(d, conninfo, sizeof conninfo, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = start_masters(d, masters, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = dev_prepare_web(d, is_usual, err);
    if (st != STATUS_OK) {
        return st;
    }
    return write_config(d, conninfo, err);
}

enum status dev_start_child(struct dev_cluster *d, const char *program, int number, struct err *err)
{
    char path[SERVER_PATH_MAX];
    char state[DEV_DIR_MAX + 64];
    struct dev_child *child = &d->children[d->child_count];
    enum status st = STATUS_OK;
    if (d->bin[0] != '\0') {
        (void)snprintf(path, sizeof path, "%s/%s", d->bin, program);
    } else {
        st = ctl_program_path(program, path, sizeof path, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(state, sizeof state, "CLAIMD_WORKER_STATE_DIR=%s/worker-%d", d->dir, number);
    (void)snprintf(child->name, sizeof child->name, "%s %d", program, number);
    const char *const argv[] = {path, "--config", d->config_path, NULL};
    /* program_start() runs a program as root if the servers' user cannot read it; dev_lower() has
     * made sure that this user can. */
    if (!program_user_reaches(path) || !program_user_reaches(d->config_path) ||
        !program_user_reaches(d->plugins)) {
        return err_fail(err, STATUS_INVALID,
                        "%s would run as root: the servers' user cannot read its files", program);
    }
    const char *const env[] = {state, NULL};
    st = program_start(argv, env, NULL, &child->pid, err);
    if (st != STATUS_OK) {
        return st;
    }
    d->child_count++;
    return STATUS_OK;
}

void dev_release(struct dev_cluster *d)
{
    for (size_t i = 0; i < d->child_count; i++) {
        if (d->children[i].pid > 0) {
            program_kill(d->children[i].pid);
        }
    }
    for (size_t i = 0; i < d->master_count; i++) {
        redis_server_stop(&d->masters[i]);
    }
    pg_server_stop(&d->pg);
    if (d->lock_fd >= 0) {
        (void)close(d->lock_fd);
    }
}
