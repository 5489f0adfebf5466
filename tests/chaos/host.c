/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/host.h"

#include "base/clock.h"
#include "base/proc.h"
#include "cluster/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define AGAIN_US (1 * US_PER_S) /* as a supervisor would */
#define END_US (30 * US_PER_S)  /* longer than any drain of a daemon */
#define EXIT_DEPENDENCY 3
#define YOUNG_US (30 * US_PER_S)
#define PIPE_BYTES 4096

void hosts_init(struct world *w)
{
    const int64_t counts[] = {w->options->schedulers, w->options->workers};
    for (int role = HOST_SCHEDULER; role <= HOST_WORKER; role++) {
        for (int64_t i = 0; i < counts[role]; i++) {
            struct host *h = &w->hosts[w->host_count++];
            *h = (struct host){.role = (enum host_role)role, .ended_by_us = WORLD_NEVER};
            (void)snprintf(h->name, sizeof h->name, "%c%d", role == HOST_WORKER ? 'w' : 's',
                           (int)i + 1);
        }
    }
}

void host_close_log(struct host *h)
{
    if (h->log_fd > 0) {
        (void)close(h->log_fd);
        h->log_fd = 0;
    }
}

/* Makes a pipe of one page, with a reader that does not read. */
static enum status make_pipe(struct host *h, const char *path, struct err *err)
{
    host_close_log(h);
    if (mkfifo(path, 0666) != 0 && errno != EEXIST) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", path);
    }
    h->log_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (h->log_fd < 0 || fcntl(h->log_fd, F_SETPIPE_SZ, PIPE_BYTES) < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "open %s", path);
    }
    return STATUS_OK;
}

static enum status choose_log(const struct world *w, struct host *h, char *ret_path, size_t size,
                              struct err *err)
{
    if (h->log == HOST_LOG_FULL) {
        (void)snprintf(ret_path, size, "/dev/full");
        return STATUS_OK;
    }
    bool is_file = h->log == HOST_LOG_FILE;
    if (is_file) {
        (void)snprintf(ret_path, size, "%s/logs/%s.log", w->folder.path, h->name);
    } else { /* not in the folder: whatever reads the folder would hang */
        (void)snprintf(ret_path, size, "%s/%s.pipe", w->dir, h->name);
    }
    return is_file ? STATUS_OK : make_pipe(h, ret_path, err);
}

static enum status start(struct world *w, struct host *h, struct err *err)
{
    bool is_worker = h->role == HOST_WORKER;
    char program[PATH_SIZE];
    char log[PATH_SIZE];
    char state[PATH_SIZE];
    char login[PATH_SIZE];
    char history[PATH_SIZE];
    (void)snprintf(program, sizeof program, "%s/claimd-%s", w->bin_dir,
                   is_worker ? "worker" : "scheduler");
    enum status st = choose_log(w, h, log, sizeof log, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(state, sizeof state, "CLAIMD_WORKER_STATE_DIR=%s/state-%s-%d", w->dir, h->name,
                   h->life);
    /* The last "user" of a conninfo wins. */
    (void)snprintf(login, sizeof login, "CLAIMD_POSTGRES_CONNINFO=%s user=chaos_%s",
                   w->net_conninfo, is_worker ? "worker" : "scheduler");
    (void)snprintf(history, sizeof history, "CLAIMD_HISTORY=%s/history", w->folder.path);
    const char *const argv[] = {program, "--config", w->config_path, NULL};
    const char *env[ARRAY_COUNT(h->env) + 4] = {state, login};
    size_t n = 2;
    if (!w->plan->is_bare) {
        env[n++] = history;
    }
    for (size_t i = 0; i < ARRAY_COUNT(h->env) && h->env[i] != NULL; i++) {
        env[n++] = h->env[i];
    }
    st = program_start(argv, env, log, &h->pid, err);
    if (st == STATUS_OK) {
        h->started_us = clock_boot_us();
        if (w->net != NULL) {
            link_proxy_is_host(w->net, (size_t)(h - w->hosts), h->pid);
        }
    }
    return st;
}

static void note(struct world *w, const struct host *h, const char *what, int code, unsigned traits)
{
    journal_write(&w->nemesis,
                  json_pack("{s:s, s:s, s:s, s:i, s:i, s:i}", "ph", "info", "x", what, "target",
                            h->name, "pid", (int)h->pid, "code", code, "traits", (int)traits));
}

static void host_ended(struct world *w, struct host *h, int status, int64_t now_us)
{
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    note(w, h, "ended", code, TRAIT_REPORT | TRAIT_SPARES_WAITS);
    bool is_told = h->ended_by_us != WORLD_NEVER; /* perhaps before it handled the signal */
    /* A reload signal that arrived while it was stopped, just after its start. */
    bool is_young = code == 128 + SIGHUP && now_us - h->started_us < YOUNG_US;
    bool is_expected = is_young || code == 0 || code == EXIT_DEPENDENCY ||
                       (h->is_killed && code == 128 + SIGKILL) ||
                       (is_told && code == 128 + SIGTERM);
    if (WIFSIGNALED(status) && !is_expected) {
        world_violation(w, h->name, "died of signal %d", WTERMSIG(status));
    } else if (!is_expected) {
        note(w, h, "failed", code, TRAIT_REPORT);
    }
    h->pid = 0;
    h->ended_by_us = WORLD_NEVER;
    h->is_killed = false;
    if (h->restart_us == WORLD_NEVER) {
        h->restart_us = now_us + world_scaled(w, AGAIN_US);
    }
}

void host_tick(struct world *w, struct host *h, int64_t now_us)
{
    int status = 0;
    struct err why = {0};
    if (h->pid > 0 && child_is_gone(h->pid, &status)) {
        host_ended(w, h, status, now_us);
    } else if (h->pid > 0 && now_us > h->ended_by_us) {
        world_violation(w, h->name, "still runs %lld s after SIGTERM",
                        (long long)(END_US / US_PER_S));
        host_kill(w, h);
    } else if (h->pid == 0 && now_us >= h->restart_us) {
        bool is_started = start(w, h, &why) == STATUS_OK;
        h->restart_us = is_started ? WORLD_NEVER : now_us + AGAIN_US;
        note(w, h, is_started ? "started" : "not started", 0,
             is_started ? TRAIT_REPORT | TRAIT_SPARES_WAITS : TRAIT_SPARES_RESCUES);
    }
}

void host_kill(struct world *w, struct host *h)
{
    int status = 0;
    (void)w;
    if (h->pid > 0) {
        h->is_killed = true;
        (void)kill(h->pid, SIGKILL);
        if (child_wait_gone(h->pid, US_PER_S, &status)) {
            host_ended(w, h, status, clock_boot_us());
        }
    }
}

void host_terminate(struct world *w, struct host *h, int64_t now_us)
{
    (void)w;
    if (h->pid > 0) {
        h->ended_by_us = now_us + END_US;
        (void)kill(h->pid, SIGTERM);
    }
}

void host_continue(struct world *w, pid_t pid)
{
    for (size_t i = 0; i < w->host_count; i++) {
        struct host *h = &w->hosts[i];
        if (h->pid == pid && h->ended_by_us != WORLD_NEVER) {
            h->ended_by_us = clock_boot_us() + END_US;
        }
    }
    (void)kill(pid, SIGCONT);
}

size_t host_runners(const struct host *h, pid_t ret_pids[HOST_RUNNERS_MAX])
{
    return program_children(h->pid, ret_pids, HOST_RUNNERS_MAX);
}

int64_t process_cpu_us(pid_t pid)
{
    struct proc_stat stat;
    return proc_stat(pid, &stat) ? stat.own_us : 0;
}
