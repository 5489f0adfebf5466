/* SPDX-License-Identifier: Apache-2.0
 *
 * A private PostgreSQL. */
#include "base/buf.h"
#include "base/clock.h"
#include "cluster/child.h"
#include "cluster/pg_data.h"
#include "cluster/servers.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>

#define START_US (60 * US_PER_S)
#define STOP_US (10 * US_PER_S)
#define ORPHAN_US (2 * US_PER_S)
#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define CHILDREN_MAX 256
#define STATUS_LINE 8 /* line of postmaster.pid with the status, since PostgreSQL 10 */

/* Returns the pid of the postmaster, which writes it to that file, and writes "ready" there when it
 * accepts connections. */
static pid_t postmaster(const struct pg_server *s, bool *ret_is_ready)
{
    char path[PATH_SIZE];
    char line[256];
    pid_t pid = 0;
    (void)snprintf(path, sizeof path, "%s/data/postmaster.pid", s->dir);
    FILE *f = fopen(path, "re");
    for (int n = 1; f != NULL && fgets(line, sizeof line, f) != NULL; n++) {
        pid = n == 1 ? (pid_t)strtol(line, NULL, 10) : pid;
        *ret_is_ready = n == STATUS_LINE && strncmp(line, "ready", 5) == 0;
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return pid;
}

bool pg_server_is_ready(const struct pg_server *s)
{
    bool is_ready = false;
    return postmaster(s, &is_ready) == s->pid && is_ready;
}

bool pg_server_is_others(const struct pg_server *s)
{
    bool is_ready = false;
    int wait_status = 0;
    pid_t pid = postmaster(s, &is_ready);
    return pid > 0 && pid != s->pid && !child_is_gone(pid, &wait_status);
}

enum status pg_server_launch(struct pg_server *s, struct err *err)
{
    char program[SERVER_PATH_MAX];
    char data[PATH_SIZE];
    char sockets[PATH_SIZE];
    char log_path[PATH_SIZE];
    enum status st = child_find_program("postgres", program, sizeof program, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(data, sizeof data, "%s/data", s->dir);
    (void)snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", s->dir);
    (void)snprintf(log_path, sizeof log_path, "%s/postgres.log", s->dir);
    autoclose int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "open %s", log_path);
    }
    const char *sync = s->is_durable ? "fsync=on" : "fsync=off";
    /* Puts shared memory in files of the data directory: /dev/shm is tiny in containers, and a
     * killed server would leave its files there. */
    const char *const argv[] = {program,
                                "-D",
                                data,
                                "-c",
                                sockets,
                                "-c",
                                "listen_addresses=",
                                "-c",
                                "port=5432",
                                "-c",
                                "max_connections=100",
                                "-c",
                                "dynamic_shared_memory_type=mmap",
                                "-c",
                                sync,
                                "-c",
                                s->is_durable ? "full_page_writes=on" : "full_page_writes=off",
                                NULL};
    const struct child_spec spec = {.argv = argv,
                                    .env = s->env,
                                    .dir = s->dir,
                                    .out_fd = fd,
                                    .err_fd = fd,
                                    .death_signal = SIGQUIT}; /* PostgreSQL's immediate shutdown */
    return child_start(&spec, &s->pid, err);
}

enum status pg_server_restart(struct pg_server *s, struct err *err)
{
    enum status st = pg_server_launch(s, err);
    if (st != STATUS_OK) {
        return st;
    }
    int wait_status = 0;
    bool is_dead = false;
    if (WAIT_UNTIL(pg_server_is_ready(s) || (is_dead = child_is_gone(s->pid, &wait_status)),
                   START_US) &&
        !is_dead) {
        return STATUS_OK;
    }
    char log_path[PATH_SIZE];
    char tail[300];
    (void)snprintf(log_path, sizeof log_path, "%s/postgres.log", s->dir);
    child_log_tail(log_path, tail, sizeof tail);
    pg_server_kill(s);
    return err_fail(err, STATUS_UNAVAILABLE, "postgres in %s did not start: %s", s->dir, tail);
}

enum status pg_server_start_env(const char *dir, bool is_durable, const char *const *env,
                                struct pg_server *ret, struct err *err)
{
    struct pg_server s = {.is_durable = is_durable, .env = env};
    char data[PATH_SIZE];
    if (strlen(dir) > 107 - sizeof "/.s.PGSQL.5432.lock") {
        return err_fail(err, STATUS_LIMIT, "%s: too long for the path of a socket", dir);
    }
    (void)snprintf(s.dir, sizeof s.dir, "%s", dir);
    (void)snprintf(s.conninfo, sizeof s.conninfo,
                   "host=%.100s port=5432 user=postgres dbname=postgres", dir);
    (void)snprintf(data, sizeof data, "%s/data", dir);
    enum status st = dir_ensure(dir, 0755, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = pg_data_make(data, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = pg_server_restart(&s, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = s;
    return STATUS_OK;
}

enum status pg_server_start(const char *dir, bool is_durable, struct pg_server *ret,
                            struct err *err)
{
    return pg_server_start_env(dir, is_durable, NULL, ret, err);
}

/* The children of a killed postmaster end by themselves when they notice its death. A child that is
 * busy computing does not notice, and a new postmaster would refuse to start beside it. */
void pg_server_kill(struct pg_server *s)
{
    static const int ladder[] = {SIGKILL};
    static const char *const pid_files[] = {"data/postmaster.pid", ".s.PGSQL.5432.lock"};
    pid_t children[CHILDREN_MAX];
    int status = 0;
    if (s->pid <= 0) {
        return;
    }
    (void)kill(s->pid, SIGSTOP); /* so that it forks no child after they are listed */
    size_t count = program_children(s->pid, children, CHILDREN_MAX);
    child_end(s->pid, ladder, ARRAY_COUNT(ladder), STOP_US);
    s->pid = 0;
    int64_t end_us = wait_now_us() + ORPHAN_US;
    for (size_t i = 0; i < count; i++) {
        if (!child_wait_gone(children[i], end_us - wait_now_us(), &status)) {
            child_end(children[i], ladder, ARRAY_COUNT(ladder), STOP_US);
        }
    }
    /* All processes are gone. In a fork of the process that started it, the postmaster stays a
     * zombie, and the next postmaster would take it for a running one. */
    for (size_t i = 0; i < ARRAY_COUNT(pid_files); i++) {
        char path[PATH_SIZE];
        (void)snprintf(path, sizeof path, "%s/%s", s->dir, pid_files[i]);
        (void)unlink(path);
    }
}

void pg_server_stop(struct pg_server *s)
{
    static const int ladder[] = {SIGINT, SIGQUIT}; /* fast, then immediate shutdown */
    int status = 0;
    if (s->pid <= 0) {
        return;
    }
    child_end(s->pid, ladder, ARRAY_COUNT(ladder), STOP_US);
    if (!child_is_gone(s->pid, &status)) {
        pg_server_kill(s);
    }
    s->pid = 0;
}

/* Prefers the psql beside postgres: the one in Debian's $PATH is a Perl script that starts it. */
static enum status find_psql(char *ret, size_t size, struct err *err)
{
    char postgres[SERVER_PATH_MAX];
    char real[PATH_MAX];
    enum status st = child_find_program("postgres", postgres, sizeof postgres, err);
    if (st == STATUS_OK && realpath(postgres, real) != NULL) {
        *strrchr(real, '/') = '\0';
        int n = snprintf(ret, size, "%s/psql", real);
        if (n > 0 && (size_t)n < size && access(ret, X_OK) == 0) {
            return STATUS_OK;
        }
    }
    return child_find_program("psql", ret, size, err);
}

enum status pg_server_ask(const struct pg_server *s, const char *sql, char *ret_text, size_t size,
                          struct err *err)
{
    char psql[SERVER_PATH_MAX];
    autobuf struct buf out = BUF_INIT(PG_TOOL_OUTPUT_MAX);
    enum status st = find_psql(psql, sizeof psql, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const argv[] = {psql, "-XqAt",     "-F\n", "-v", "ON_ERROR_STOP=1",
                                "-d", s->conninfo, "-c",   sql,  NULL};
    st = pg_tool_run(argv, &out, err);
    if (st != STATUS_OK || ret_text == NULL) {
        return st;
    }
    const char *text = out.len > 0 ? buf_at(&out) : "";
    size_t len = strcspn(text, "\n");
    if (len >= size) {
        return err_fail(err, STATUS_LIMIT, "an answer of %zu bytes: %s", len, sql);
    }
    memcpy(ret_text, text, len);
    ret_text[len] = '\0';
    return STATUS_OK;
}

/* Names are put into SQL in quotes, so only letters, digits and '_' are allowed. */
static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

enum status pg_server_create_db(const struct pg_server *s, const char *name,
                                const char *template_name, char *ret_conninfo, size_t size,
                                struct err *err)
{
    char sql[320];
    const char *from = template_name != NULL ? template_name : "template1";
    if (!is_plain_name(name) || !is_plain_name(from) || strlen(name) + strlen(from) > 120) {
        return err_fail(err, STATUS_INVALID, "create database '%.64s' from '%.64s': bad name", name,
                        from);
    }
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE \"%s\" TEMPLATE \"%s\"", name, from);
    enum status st = pg_server_ask(s, sql, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    int n = snprintf(ret_conninfo, size, "host=%s port=5432 user=postgres dbname=%s", s->dir, name);
    if (n < 0 || (size_t)n >= size) {
        return err_fail(err, STATUS_LIMIT, "create database '%s': conninfo is too long", name);
    }
    return STATUS_OK;
}
