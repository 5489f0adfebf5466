/* SPDX-License-Identifier: Apache-2.0
 *
 * A private Redis. */
#include "base/clock.h"
#include "cluster/child.h"
#include "cluster/servers.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#define START_US (60 * US_PER_S)
#define STOP_US (5 * US_PER_S)
#define ASK_US (60 * US_PER_S)
#define ASK_WORDS_MAX 64

static const char config_text[] = "port 0\n"
                                  "unixsocketperm 777\n"
                                  "save \"\"\n"
                                  "appendonly no\n"
                                  "maxmemory-policy noeviction\n"
                                  "daemonize no\n"
                                  "logfile redis.log\n";

/* Chooses the program from CLAIMD_TEST_REDIS, "redis-server" by default. The variable holds names
 * of programs, taken in turn, so that the masters of one test may be of several products. */
static void choose_program(struct redis_server *s)
{
    static size_t started;
    const char *list = getenv("CLAIMD_TEST_REDIS");
    const char *name = list != NULL && list[0] != '\0' ? list : "redis-server";
    size_t count = 1;
    for (const char *p = name; *p != '\0'; p++) {
        count += *p == ',';
    }
    for (size_t skip = started++ % count; skip > 0; skip--) {
        name = strchr(name, ',') + 1;
    }
    (void)snprintf(s->program, sizeof s->program, "%.*s", (int)strcspn(name, ","), name);
}

static enum status write_config(const struct redis_server *s, const char *extra, struct err *err)
{
    char path[SERVER_PATH_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/redis.conf", s->dir);
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
    }
    int n = fprintf(f, "%sunixsocket %s\n%s\n", config_text, s->path, extra != NULL ? extra : "");
    if (fclose(f) != 0 || n < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
    }
    return STATUS_OK;
}

/* Any reply will do: with a password it is an error, but it proves that the server is up. */
static bool answers(const char *path)
{
    static const char ping[] = "PING\r\n";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const struct timeval second = {.tv_sec = 1};
    char reply = 0;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second) == 0 &&
           connect(fd, (const struct sockaddr *)&addr, sizeof addr) == 0 &&
           send(fd, ping, sizeof ping - 1, MSG_NOSIGNAL) > 0 && recv(fd, &reply, 1, 0) == 1;
}

enum status redis_server_restart(struct redis_server *s, struct err *err)
{
    char program[SERVER_PATH_MAX];
    char tail[300];
    char log_path[SERVER_PATH_MAX + 16];
    char conf[SERVER_PATH_MAX + 16];
    int wait_status = 0;
    enum status st = child_find_program(s->program, program, sizeof program, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)unlink(s->path);
    (void)snprintf(conf, sizeof conf, "%s/redis.conf", s->dir);
    const char *const argv[] = {program, conf, NULL};
    autoclose int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const struct child_spec spec = {.argv = argv,
                                    .env = s->env,
                                    .dir = s->dir,
                                    .out_fd = null_fd,
                                    .err_fd = null_fd,
                                    .death_signal = SIGKILL};
    st = child_start(&spec, &s->pid, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool is_dead = false;
    if (WAIT_UNTIL(answers(s->path) || (is_dead = child_is_gone(s->pid, &wait_status)), START_US) &&
        !is_dead) {
        return STATUS_OK;
    }
    redis_server_kill(s);
    (void)snprintf(log_path, sizeof log_path, "%s/redis.log", s->dir);
    child_log_tail(log_path, tail, sizeof tail);
    return err_fail(err, STATUS_UNAVAILABLE, "%s in %s did not start: %s", s->program, s->dir,
                    tail);
}

enum status redis_server_start_env(const char *dir, const char *extra, const char *const *env,
                                   struct redis_server *ret, struct err *err)
{
    struct redis_server s = {.env = env};
    if ((size_t)snprintf(s.path, sizeof s.path, "%s/redis.sock", dir) >= sizeof s.path) {
        return err_fail(err, STATUS_LIMIT, "%s: too long for the path of a socket", dir);
    }
    (void)snprintf(s.dir, sizeof s.dir, "%s", dir);
    choose_program(&s);
    enum status st = dir_ensure(dir, 0755, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = write_config(&s, extra, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = redis_server_restart(&s, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = s;
    return STATUS_OK;
}

enum status redis_server_start(const char *dir, const char *extra, struct redis_server *ret,
                               struct err *err)
{
    return redis_server_start_env(dir, extra, NULL, ret, err);
}

static void end(struct redis_server *s, int first)
{
    const int ladder[] = {first, SIGKILL};
    if (s->pid > 0) {
        child_end(s->pid, ladder, ARRAY_COUNT(ladder), STOP_US);
        s->pid = 0;
        (void)unlink(s->path);
    }
}

void redis_server_kill(struct redis_server *s)
{
    end(s, SIGKILL);
}

void redis_server_stop(struct redis_server *s)
{
    end(s, SIGTERM);
}

enum status redis_server_ask(const struct redis_server *s, const char *const *words,
                             struct buf *out, struct err *err)
{
    const char *argv[ASK_WORDS_MAX + 4] = {"redis-cli", "-s", s->path};
    int code = -1;
    for (size_t i = 0; words[i] != NULL; i++) {
        if (i == ASK_WORDS_MAX) {
            return err_fail(err, STATUS_LIMIT, "redis-cli: more than %d words", ASK_WORDS_MAX);
        }
        argv[3 + i] = words[i];
    }
    enum status st = program_run(argv, NULL, ASK_US, out, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    return code == 0
               ? STATUS_OK
               : err_fail(err, STATUS_UNAVAILABLE, "redis-cli %s ended with %d", words[0], code);
}
