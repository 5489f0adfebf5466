/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/locks_contest.h"

#include "base/clock.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define READY_US (30 * US_PER_S)
#define WARM_UP_US (US_PER_S / 2)
/* Time for a first win of both sides; after it, the contest is measured in any case. */
#define SEEN_US (13 * US_PER_S)
#define MONITOR_US US_PER_S
#define END_US (2 * US_PER_S)
#define KILLS_US (US_PER_S / 2)
#define FORGIVEN_US (CONTEST_KILLS_TTL_MS * US_PER_MS + US_PER_S)
#define STEP_US US_PER_MS
#define PATH_SIZE (SERVER_PATH_MAX + 32)

static_assert(sizeof(struct contest_client) == 64, "rivals/redsync/contest.go has this layout");
static_assert(offsetof(struct contest_share, clients) == 128, "and this");

struct side { /* ours or redsync's */
    int64_t wins;
    int64_t won_us; /* time of the last win */
    int64_t early_us;
    int64_t late_us;
};

struct arena {
    const struct locks_world *world;
    const struct contest *contest;
    struct contest_share *share;
    char path[PATH_SIZE];
    char key[64];
    pid_t pids[CONTEST_CLIENTS_MAX];
    /* Observed since all clients are ready: */
    int64_t entries;
    int64_t entered_us; /* time of the last win */
    int64_t stall_us;
    struct side sides[2];
    int64_t kill_us; /* time of the next kill */
    int64_t forgiven_us;
    int64_t killed;
};

/* A snapshot of the clients' counters. */
struct standing {
    int64_t at_us;
    int64_t entries;
    int64_t changes;
    int64_t wins[CONTEST_CLIENTS_MAX];
};

static void pause_us(int64_t us)
{
    const struct timespec t = {.tv_nsec = (long)us * 1000};
    (void)nanosleep(&t, NULL);
}

/* ---- the clients ---- */

static enum status share_open(struct arena *a, struct err *err)
{
    (void)snprintf(a->path, sizeof a->path, "%s/contest", a->world->dir);
    autoclose int fd = open(a->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    /* redsync's program may run as another user, and umask removes bits */
    if (fd < 0 || fchmod(fd, 0666) != 0 || ftruncate(fd, sizeof *a->share) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "%s", a->path);
    }
    void *at = mmap(NULL, sizeof *a->share, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "map %s", a->path);
    }
    a->share = at;
    return STATUS_OK;
}

static enum status start_ours(struct arena *a, size_t index, struct err *err)
{
    const struct contest_entrant self = {
        .world = a->world, .contest = a->contest, .share = a->share, .key = a->key, .index = index};
    pid_t parent = getpid();
    pid_t pid = fork(); /* no thread runs here between two measurements */
    if (pid < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fork");
    }
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        contest_enter(&self);
    }
    a->pids[index] = pid;
    return STATUS_OK;
}

static enum status start_rival(struct arena *a, size_t index, struct err *err)
{
    char index_text[24];
    char hold_text[24];
    const char *argv[9 + LOCKS_MASTERS + 1] = {a->world->rival, "-contest", a->path,
                                               "-key",          a->key,     "-index",
                                               index_text,      "-hold",    hold_text};
    (void)snprintf(index_text, sizeof index_text, "%zu", index);
    (void)snprintf(hold_text, sizeof hold_text, "%lld", (long long)a->contest->hold_ms);
    for (size_t i = 0; i < LOCKS_MASTERS; i++) {
        argv[9 + i] = a->world->servers[i].path;
    }
    return program_start(argv, NULL, NULL, &a->pids[index], err);
}

static bool is_rival(const struct contest *c, size_t index)
{
    return index >= c->clients - c->rivals;
}

static enum status start_all(struct arena *a, struct err *err)
{
    int64_t end_us = clock_boot_us() + READY_US;
    int64_t count = (int64_t)a->contest->clients;
    for (size_t i = 0; i < a->contest->clients; i++) {
        enum status st = is_rival(a->contest, i) ? start_rival(a, i, err) : start_ours(a, i, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    while (a->share->ready < count && clock_boot_us() < end_us) {
        pause_us(10 * STEP_US);
    }
    return a->share->ready == count
               ? STATUS_OK
               : err_fail(err, STATUS_UNAVAILABLE, "%lld of %lld clients have started",
                          (long long)a->share->ready, (long long)count);
}

/* A waiting client gets the lock once more before it notices the end; a client that has not ended
 * by then is killed. */
static void end_all(struct arena *a)
{
    int64_t end_us = clock_boot_us() + END_US;
    size_t left = a->contest->clients;
    while (left > 0 && clock_boot_us() < end_us) {
        left = 0;
        for (size_t i = 0; i < a->contest->clients; i++) {
            pid_t pid = a->pids[i];
            a->pids[i] = pid > 0 && waitpid(pid, NULL, WNOHANG) != 0 ? 0 : pid;
            left += a->pids[i] > 0;
        }
        pause_us(5 * STEP_US);
    }
    for (size_t i = 0; i < a->contest->clients; i++) {
        if (a->pids[i] > 0) {
            program_kill(a->pids[i]);
        }
    }
}

/* ---- kills ---- */

/* Kills a waiting client, since the death of a holder costs its lease. It was certainly waiting if
 * the same other client was inside before and after the kill; if not, the stall is forgiven. */
static enum status kill_one(struct arena *a, struct err *err)
{
    struct contest_share *s = a->share;
    assert(a->contest->clients > 0);
    size_t victim = (size_t)random() % a->contest->clients;
    int64_t entries = s->entries;
    int64_t holder = s->inside[0];
    if (holder == 0 || holder == (int64_t)victim + 1 || entries == a->entries) {
        return STATUS_OK; /* tried again soon */
    }
    (void)kill(a->pids[victim], SIGKILL);
    if (s->inside[0] != holder || s->entries != entries) {
        int64_t id = (int64_t)victim + 1;
        a->forgiven_us = clock_boot_us() + FORGIVEN_US;
        (void)atomic_compare_exchange_strong(&s->inside[0], &id, 0);
    }
    program_kill(a->pids[victim]);
    a->killed++;
    a->kill_us += KILLS_US;
    s->clients[victim].since_us = 0;
    return start_ours(a, victim, err);
}

/* ---- watching ---- */

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void look_at_sides(struct arena *a, int64_t now_us)
{
    int64_t wins[2] = {0};
    int64_t seen_us = a->share->seen_us;
    for (size_t i = 0; i < a->contest->clients; i++) {
        wins[is_rival(a->contest, i)] += a->share->clients[i].wins;
    }
    for (size_t i = 0; i < 2; i++) {
        struct side *side = &a->sides[i];
        if (seen_us == 0) {
            side->early_us = max(side->early_us, now_us - side->won_us);
        } else {
            side->late_us = max(side->late_us, now_us - max(side->won_us, seen_us));
        }
        side->won_us = wins[i] != side->wins ? now_us : side->won_us;
        side->wins = wins[i];
    }
}

static void look(struct arena *a)
{
    int64_t now_us = clock_boot_us();
    int64_t stalled_us = now_us - a->entered_us;
    if (stalled_us > a->stall_us && now_us > a->forgiven_us) {
        a->stall_us = stalled_us;
    }
    if (a->share->entries != a->entries || now_us <= a->forgiven_us) {
        a->entries = a->share->entries;
        a->entered_us = now_us;
    }
    look_at_sides(a, now_us);
}

static enum status watch_until(struct arena *a, int64_t end_us, struct contest_monitor *m,
                               struct err *err)
{
    while (clock_boot_us() < end_us) {
        enum status st = STATUS_OK;
        if (a->contest->has_kills && clock_boot_us() >= a->kill_us) {
            st = kill_one(a, err);
        }
        if (st != STATUS_OK) {
            return st;
        }
        look(a);
        if (m != NULL) {
            contest_monitor_read(m);
        }
        pause_us(STEP_US);
    }
    return STATUS_OK;
}

static struct standing stand(const struct arena *a)
{
    struct standing now = {
        .at_us = clock_boot_us(), .entries = a->share->entries, .changes = a->share->changes};
    for (size_t i = 0; i < a->contest->clients; i++) {
        now.wins[i] = a->share->clients[i].wins;
    }
    return now;
}

/* Counts for at most MONITOR_US, since MONITOR has a cost. */
static enum status count_commands(struct arena *a, int64_t us, double *ret_per_win, struct err *err)
{
    struct contest_monitor m = {.fd = -1};
    enum status st = contest_monitor_open(&m, a->world->servers[0].path, err);
    int64_t entries = a->share->entries;
    if (st == STATUS_OK) {
        st = watch_until(a, clock_boot_us() + us, &m, err);
    }
    entries = a->share->entries - entries;
    contest_monitor_read(&m);
    contest_monitor_close(&m);
    *ret_per_win = entries > 0 ? (double)m.commands / (double)entries : (double)NAN;
    return st;
}

/* Waits until both sides have had their first win, if there are two. */
static enum status warm_up(struct arena *a, struct err *err)
{
    bool has_both = a->contest->rivals > 0 && a->contest->rivals < a->contest->clients;
    int64_t end_us = clock_boot_us() + (has_both ? SEEN_US : WARM_UP_US);
    a->entered_us = clock_boot_us();
    a->sides[0].won_us = a->entered_us;
    a->sides[1].won_us = a->entered_us;
    a->kill_us = a->entered_us + KILLS_US;
    a->share->phase = CONTEST_GO;
    while (has_both && a->share->seen_us == 0 && clock_boot_us() < end_us) {
        look(a);
        pause_us(STEP_US);
    }
    return watch_until(a, has_both ? clock_boot_us() + WARM_UP_US : end_us, NULL, err);
}

/* ---- figures ---- */

static void note_waits(const struct arena *a, double *figures)
{
    int64_t now_us = clock_boot_us();
    int64_t longest_us = 0;
    for (size_t i = 0; i < a->contest->clients; i++) {
        const struct contest_client *c = &a->share->clients[i];
        int64_t since_us = c->since_us;
        longest_us = max(longest_us, c->longest_us);
        longest_us = max(longest_us, since_us != 0 ? now_us - since_us : 0);
    }
    figures[FIGURE_WAIT_MS] = 1e-3 * (double)longest_us;
    figures[FIGURE_EARLY_MS] = 1e-3 * (double)max(a->sides[0].early_us, a->sides[1].early_us);
    figures[FIGURE_OURS_LATE_MS] = 1e-3 * (double)a->sides[0].late_us;
    figures[FIGURE_RIVALS_LATE_MS] = 1e-3 * (double)a->sides[1].late_us;
    figures[FIGURE_STALL_MS] = 1e-3 * (double)a->stall_us;
}

static void note_wins(const struct arena *a, const struct standing *from, const struct standing *to,
                      double *figures)
{
    const struct contest *c = a->contest;
    double seconds = 1e-6 * (double)(to->at_us - from->at_us);
    double sums[2] = {0};
    double least = HUGE_VAL;
    double most = 0;
    for (size_t i = 0; i < c->clients; i++) {
        double wins = (double)(to->wins[i] - from->wins[i]);
        sums[is_rival(c, i)] += wins;
        least = fmin(least, wins);
        most = fmax(most, wins);
    }
    double all = sums[0] + sums[1];
    double fair = fmax(all, 1) / (double)c->clients;
    figures[FIGURE_WINS] = all / seconds;
    figures[FIGURE_CHANGES] = (double)(to->changes - from->changes) / fmax(all, 1);
    figures[FIGURE_LEAST] = least / fair;
    figures[FIGURE_MOST] = most / fair;
    if (c->rivals < c->clients) {
        figures[FIGURE_OURS] = sums[0] / fair / (double)(c->clients - c->rivals);
    }
    if (c->rivals > 0) {
        figures[FIGURE_RIVALS] = sums[1] / fair / (double)c->rivals;
    }
}

static enum status measure(struct arena *a, int64_t seconds, double *figures, struct err *err)
{
    int64_t us = seconds * US_PER_S;
    int64_t monitor_us = us / 3 < MONITOR_US ? us / 3 : MONITOR_US;
    enum status st = warm_up(a, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct standing from = stand(a);
    st = watch_until(a, from.at_us + (us - monitor_us) / 2, NULL, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = count_commands(a, monitor_us, &figures[FIGURE_COMMANDS], err);
    if (st != STATUS_OK) {
        return st;
    }
    st = watch_until(a, from.at_us + us, NULL, err);
    struct standing to = stand(a);
    note_wins(a, &from, &to, figures);
    note_waits(a, figures);
    figures[FIGURE_FAILURES] = (double)a->share->failures;
    figures[FIGURE_KILLED] = (double)a->killed;
    return st;
}

enum status contest_run(const struct locks_world *w, const struct contest *c, int64_t seconds,
                        double ret_figures[FIGURES], struct err *err)
{
    static int number; /* gives each contest a key of its own */
    struct arena a = {.world = w, .contest = c};
    assert(c->clients > 0 && c->clients <= CONTEST_CLIENTS_MAX);
    (void)snprintf(a.key, sizeof a.key, "bench:contest:%d", ++number);
    for (size_t i = 0; i < FIGURES; i++) {
        ret_figures[i] = 0;
    }
    enum status st = share_open(&a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = start_all(&a, err);
    if (st == STATUS_OK) {
        st = measure(&a, seconds, ret_figures, err);
    }
    a.share->phase = CONTEST_STOP;
    end_all(&a);
    ret_figures[FIGURE_OVERLAPS] = (double)a.share->overlaps;
    (void)munmap(a.share, sizeof *a.share);
    (void)unlink(a.path);
    return st;
}
