/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock exec and redlock elect: run a command under a lock. This thread only looks after the
 * command; the library's thread keeps the lease, and a guard (guard.h) replaces both if they fail.
 * At the end, the lock is released only after the command's process group is gone. */
#include "base/clock.h"
#include "redlock/cmd/cli.h"
#include "redlock/cmd/group.h"
#include "redlock/cmd/guard.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#define HOLD_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)
#define KILL_SHARE 6     /* by default, SIGTERM is sent a sixth of the ttl before SIGKILL */
#define CHECKS_PER_TTL 6 /* how often the lease is checked */
#define MARGIN_SHARE 50  /* SIGKILL is sent this fraction of the ttl before the lease ends */
#define MARGIN_MIN_MS 50
#define MARGIN_MAX_MS 500 /* within these bounds */

struct turn { /* one period of holding the lock */
    struct redlock_lock *lock;
    struct group group;
    int64_t hold_until_us;
    bool was_termed;
    bool was_killed;
    bool is_lost_told;
    bool is_suspect_told;
};

struct exec {
    struct cli cli;
    const char *verb;
    const char *key;
    char **argv;
    int64_t wait_ms;
    int64_t max_hold_ms;
    int64_t min_hold_ms;
    int64_t kill_after_ms; /* −1 = derived from the ttl */
    int64_t conflict_code;
    int64_t slots; /* 0 = a plain lock */
    enum redlock_mode mode;
    bool warns_only;
    bool is_quiet;
    bool wants_fence;

    bool is_election; /* after a loss it waits for the lock again */

    sigset_t old_mask;
    int signal_fd;
    int timer_fd;
    struct guard guard;
    struct redlock_client *client;
    bool is_ending; /* a signal has requested it */
    struct turn turn;
};

/* ---- options ---- */

#define OWN_OPTIONS                                              \
    {"max-hold", required_argument, NULL, OPT_MAX_HOLD},         \
        {"kill-after", required_argument, NULL, OPT_KILL_AFTER}, \
        {"fence", no_argument, NULL, OPT_FENCE},                 \
    {                                                            \
        "quiet", no_argument, NULL, 'q'                          \
    }

enum {
    OPT_WAIT = CLI_OPT_OWN,
    OPT_MAX_HOLD,
    OPT_MIN_HOLD,
    OPT_ON_LOST,
    OPT_KILL_AFTER,
    OPT_FENCE,
    OPT_SLOTS
};

static const struct option exec_options[] = {CLI_LONG_OPTIONS,
                                             OWN_OPTIONS,
                                             {"wait", required_argument, NULL, OPT_WAIT},
                                             {"min-hold", required_argument, NULL, OPT_MIN_HOLD},
                                             {"slots", required_argument, NULL, OPT_SLOTS},
                                             {"shared", no_argument, NULL, 's'},
                                             {"exclusive", no_argument, NULL, 'x'},
                                             {"on-lost", required_argument, NULL, OPT_ON_LOST},
                                             {"conflict-exit-code", required_argument, NULL, 'E'},
                                             {NULL, 0, NULL, 0}};
static const struct option elect_options[] = {CLI_LONG_OPTIONS, OWN_OPTIONS, {NULL, 0, NULL, 0}};

static int take_on_lost(struct exec *x, const char *value)
{
    if (strcmp(value, "kill") != 0 && strcmp(value, "warn") != 0) {
        return cli_usage_error("exec", "--on-lost: '%s' is neither kill nor warn", value);
    }
    x->warns_only = strcmp(value, "warn") == 0;
    return CLI_OK;
}

static int take_option(struct exec *x, int code, const char *value)
{
    switch (code) {
    case OPT_WAIT:
        if (strcmp(value, "forever") == 0) {
            x->wait_ms = -1;
            return CLI_OK;
        }
        return cli_take_duration("wait", value, 0, HOLD_MAX_MS, &x->wait_ms);
    case OPT_MAX_HOLD:
        return cli_take_duration("max-hold", value, 1, HOLD_MAX_MS, &x->max_hold_ms);
    case OPT_MIN_HOLD:
        return cli_take_duration("min-hold", value, 0, HOLD_MAX_MS, &x->min_hold_ms);
    case OPT_ON_LOST:
        return take_on_lost(x, value);
    case OPT_KILL_AFTER:
        return cli_take_duration("kill-after", value, 0, REDLOCK_TTL_MAX_MS, &x->kill_after_ms);
    case OPT_SLOTS:
        return cli_take_number("slots", value, 1, REDLOCK_SLOTS_MAX, &x->slots);
    case 's':
        x->mode = REDLOCK_MODE_SHARED;
        return CLI_OK;
    case 'x':
        x->mode = REDLOCK_MODE_EXCLUSIVE;
        return CLI_OK;
    case OPT_FENCE:
        x->wants_fence = true;
        return CLI_OK;
    case 'q':
        x->is_quiet = true;
        return CLI_OK;
    case 'E':
        return cli_take_number("conflict-exit-code", value, 0, 255, &x->conflict_code);
    default:
        return cli_take_option(&x->cli, x->verb, code, value);
    }
}

/* Returns the longest time that a confirmed lease can have: the ttl, or --max-hold if that is
 * shorter. */
static int64_t span_ms(const struct exec *x)
{
    int64_t ttl_ms = x->cli.settings.ttl_us / US_PER_MS;
    bool is_cut = x->max_hold_ms > 0 && x->max_hold_ms < ttl_ms;
    return is_cut ? x->max_hold_ms : ttl_ms;
}

static int check(struct exec *x)
{
    if (x->key == NULL || *x->key == '\0') {
        return cli_usage_error(x->verb, "no key");
    }
    if (strlen(x->key) > REDLOCK_KEY_LEN_MAX) {
        return cli_usage_error(x->verb, "a key has at most %d bytes", REDLOCK_KEY_LEN_MAX);
    }
    if (*x->argv == NULL) {
        return cli_usage_error(x->verb, "no command after the key");
    }
    if (x->max_hold_ms > 0 && x->min_hold_ms > x->max_hold_ms) {
        return cli_usage_error(x->verb, "--min-hold: at most --max-hold, here %" PRId64 "ms",
                               x->max_hold_ms);
    }
    int code = cli_ready(&x->cli);
    if (code != CLI_OK) {
        return code;
    }
    if (x->kill_after_ms < 0) {
        x->kill_after_ms = span_ms(x) / KILL_SHARE;
    }
    /* A lease is extended at a third of the ttl, and confirmed a little later. */
    if (x->kill_after_ms > span_ms(x) / 3) {
        return cli_usage_error(x->verb,
                               "--kill-after: at most a third of the ttl and of --max-hold, here "
                               "%" PRId64 "ms",
                               span_ms(x) / 3);
    }
    return CLI_OK;
}

/* Parses KEY and options in any order, then "--" or the first word of the command. */
static int read_options(struct exec *x, int argc, char **argv)
{
    int code = 0;
    opterr = 0;
    x->argv = argv + argc;
    while ((code = getopt_long(argc, argv, x->is_election ? "-hqv" : "-hqvsxE:",
                               x->is_election ? elect_options : exec_options, NULL)) != -1) {
        if (code == 'h') {
            cli_help(x->verb);
            return cli_flush();
        }
        if (code == 1 && x->key != NULL) {
            x->argv = argv + optind - 1;
            break;
        }
        if (code == 1) {
            x->key = optarg;
            continue;
        }
        int failure = code == '?' ? cli_usage_error(x->verb,
                                                    "%s: no such option, or its value is "
                                                    "missing",
                                                    argv[optind - 1])
                                  : take_option(x, code, optarg != NULL ? optarg : "");
        if (failure != CLI_OK) {
            return failure;
        }
    }
    if (code == -1) {
        x->argv = argv + optind;
    }
    int failure = check(x);
    return failure == CLI_OK ? CLI_GO_ON : failure;
}

/* ---- looking after the command ---- */

static int64_t margin_ms(int64_t ttl_ms)
{
    int64_t ms = ttl_ms / MARGIN_SHARE;
    return ms < MARGIN_MIN_MS ? MARGIN_MIN_MS : ms > MARGIN_MAX_MS ? MARGIN_MAX_MS : ms;
}

/* Writes what the exit code also says, unless --quiet. */
static void say(const struct exec *x, const char *text)
{
    if (!x->is_quiet) {
        cli_tell("%s: %s", x->key, text);
    }
}

static void verbosely(const struct exec *x, const char *text)
{
    if (x->cli.is_verbose) {
        cli_tell("%s: %s", x->key, text);
    }
}

static void tell_state(struct exec *x, int64_t validity_ms)
{
    bool is_suspect = redlock_state(x->turn.lock) == REDLOCK_STATE_SUSPECT;
    if (validity_ms == 0 && !x->turn.is_lost_told) {
        x->turn.is_lost_told = true;
        if (!x->turn.group.is_over) {
            say(x, x->warns_only ? "the lock is lost, the command continues without it"
                                 : "the lock is lost");
        }
    } else if (validity_ms > 0 && is_suspect != x->turn.is_suspect_told) {
        x->turn.is_suspect_told = is_suspect;
        verbosely(x, is_suspect ? "not extended: too few nodes confirmed it" : "extended again");
    }
}

/* Ends the command in time. Returns when to call again. The end of the lease is checked before
 * anything else, since it may have passed during a long stop (lock.W4, F3). */
static int64_t enforce(struct exec *x)
{
    int64_t now_us = clock_boot_us();
    int64_t validity_ms = redlock_left_ms(x->turn.lock);
    int64_t kill_us = now_us + (validity_ms - margin_ms(span_ms(x))) * US_PER_MS;
    int64_t term_us = kill_us - x->kill_after_ms * US_PER_MS;
    int64_t check_us = now_us + x->cli.settings.ttl_us / CHECKS_PER_TTL;
    if (x->warns_only) {
        kill_us = term_us = INT64_MAX;
    } else if (now_us >= kill_us) {
        x->turn.was_killed = x->turn.was_killed || !x->turn.group.is_over;
        group_signal(&x->turn.group, SIGKILL);
    } else if (now_us >= term_us && !x->turn.was_termed && !x->turn.group.is_over) {
        x->turn.was_termed = true;
        /* A lease that is confirmed comes this close to its end only because of --max-hold. */
        bool is_over = x->max_hold_ms > 0 && redlock_state(x->turn.lock) == REDLOCK_STATE_HELD;
        say(x, is_over ? "--max-hold has passed: ending the command"
                       : "the lock can't be kept: ending the command");
        group_signal(&x->turn.group, SIGTERM);
        group_signal(&x->turn.group, SIGCONT); /* a stopped command must get the SIGTERM, too */
    }
    tell_state(x, validity_ms);
    guard_tell(&x->guard, x->turn.group.is_over ? 0 : x->turn.group.id, kill_us);
    int64_t next_us = now_us < term_us ? term_us : now_us < kill_us ? kill_us : check_us;
    return next_us < check_us ? next_us : check_us;
}

/* Called when job control has stopped the command. Stops our whole process group as well, as the
 * terminal driver would have done, so that the shell that waits for us notices. A session leader
 * has no such shell. The lease runs on: its end is checked before the command is continued. */
static void stop_with_it(struct exec *x, int number)
{
    verbosely(x, "stopped; the lease runs on");
    if (getsid(0) != getpid()) {
        (void)kill(0, number);
        (void)raise(SIGSTOP);
    }
    (void)enforce(x);
    group_resume(&x->turn.group);
}

static void on_signal(struct exec *x, int number)
{
    switch (number) {
    case SIGCHLD:
        break; /* group_reap() checks in every round which processes ended or stopped */
    case SIGCONT:
        group_resume(&x->turn.group);
        break;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        x->is_ending = true;
        x->turn.hold_until_us = 0;
        group_signal(&x->turn.group, number);
        break;
    default:
        group_signal(&x->turn.group, number);
        break;
    }
}

static void arm(int timer_fd, int64_t at_us)
{
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_us / US_PER_S),
                                                 .tv_nsec = (long)(at_us % US_PER_S * 1000)}};
    (void)timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void wait_for_news(struct exec *x, int64_t until_us)
{
    struct pollfd fds[] = {{.fd = x->signal_fd, .events = POLLIN},
                           {.fd = x->timer_fd, .events = POLLIN},
                           {.fd = redlock_fd(x->turn.lock), .events = POLLIN}};
    uint64_t count = 0;
    arm(x->timer_fd, until_us);
    (void)poll(fds, ARRAY_COUNT(fds), -1);
    if (fds[2].revents != 0) {
        (void)!read(fds[2].fd, &count, sizeof count);
    }
}

static bool is_done(const struct exec *x)
{
    return x->turn.group.is_over &&
           (x->turn.is_lost_told || x->turn.was_termed || clock_boot_us() >= x->turn.hold_until_us);
}

static int tend(struct exec *x)
{
    x->turn.hold_until_us = clock_boot_us() + x->min_hold_ms * US_PER_MS;
    int r = group_start(&x->turn.group, x->argv, &x->old_mask);
    if (r != 0) {
        cli_tell("can't start a process: %s", strerrordesc_np(-r));
        return CLI_SYSTEM;
    }
    for (;;) {
        int64_t next_us = enforce(x);
        if (is_done(x)) {
            break;
        }
        if (x->turn.group.is_over && x->turn.hold_until_us < next_us) {
            next_us = x->turn.hold_until_us;
        }
        wait_for_news(x, next_us);
        (void)enforce(x);
        struct signalfd_siginfo info;
        while (read(x->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
            on_signal(x, (int)info.ssi_signo);
        }
        int stopped_by = group_reap(&x->turn.group);
        if (stopped_by != 0) {
            stop_with_it(x, stopped_by);
        }
    }
    guard_tell(&x->guard, 0, INT64_MAX);
    return x->turn.was_termed || x->turn.was_killed ? CLI_LOST : x->turn.group.code;
}

/* ---- the whole run ---- */

static int signals_open(struct exec *x)
{
    static const int numbers[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                  SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP, SIGCHLD};
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        struct sigaction now;
        bool is_ignored = sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN;
        /* the SIGHUP that nohup ignores stays ignored */
        if (!is_ignored || numbers[i] == SIGCHLD) {
            (void)sigaddset(&set, numbers[i]);
        }
    }
    x->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    x->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    /* so that we can set the foreground group from the background */
    (void)sigaddset(&set, SIGTTOU);
    (void)sigaddset(&set, SIGTTIN); /* stop_with_it() passes it on */
    (void)sigaddset(&set, SIGPIPE); /* we must not end because the reader of our stderr has gone */
    (void)sigprocmask(SIG_BLOCK, &set, &x->old_mask);
    (void)signal(SIGCHLD, SIG_DFL); /* an ignored SIGCHLD would be inherited from our parent */
    if (x->signal_fd < 0 || x->timer_fd < 0) {
        cli_tell("cannot open descriptors: %s", strerrordesc_np(errno));
        return CLI_SYSTEM;
    }
    return CLI_OK;
}

static int not_won(const struct exec *x, const struct lock_wait *h, enum redlock_result result)
{
    if (h->signal_number != 0) {
        return CLI_SIGNAL + h->signal_number;
    }
    bool is_failure = result == REDLOCK_NO_QUORUM || result == REDLOCK_LOST;
    int code = result == REDLOCK_INVALID  ? CLI_USAGE
               : result == REDLOCK_SYSTEM ? CLI_SYSTEM
               : is_failure               ? CLI_NO_QUORUM
                                          : (int)x->conflict_code;
    if (code != CLI_OK) { /* with -E 0, no message if another process holds the lock */
        say(x, h->report.message[0] != '\0' ? h->report.message : redlock_text(result));
    }
    return code;
}

/* Puts the fence into the command's environment, which passes it to the resource that compares
 * it. */
static int export_fence(const struct exec *x)
{
    char text[24];
    uint64_t fence = redlock_fence(x->turn.lock);
    if (!x->wants_fence) {
        return CLI_OK;
    }
    if (fence == 0) {
        cli_tell("%s: too few nodes confirmed a fence", x->key);
        return CLI_NO_QUORUM;
    }
    (void)snprintf(text, sizeof text, "%" PRIu64, fence);
    if (setenv("REDLOCK_FENCE", text, 1) != 0) {
        cli_tell("no memory");
        return CLI_SYSTEM;
    }
    return CLI_OK;
}

static int under_lock(struct exec *x)
{
    x->turn = (struct turn){0};
    struct lock_wait h = {.client = x->client,
                          .signal_fd = x->signal_fd,
                          .request = {.key = x->key,
                                      .wait_ms = x->wait_ms,
                                      .max_hold_ms = x->max_hold_ms,
                                      .slots = (int)x->slots,
                                      .mode = x->mode,
                                      .fence = x->wants_fence}};
    enum redlock_result result = wait_for_lock(&h);
    if (result != REDLOCK_OK) {
        return not_won(x, &h, result);
    }
    x->turn.lock = h.lock;
    if (x->is_election) {
        say(x, "elected");
    } else {
        verbosely(x, h.report.message);
    }
    int code = h.signal_number != 0 ? CLI_SIGNAL + h.signal_number : export_fence(x);
    if (code == CLI_OK) {
        code = tend(x);
    }
    group_release(&x->turn.group);
    struct redlock_report report = {0};
    (void)redlock_unlock(TAKE(x->turn.lock), &report);
    if (x->cli.is_verbose) {
        cli_tell("%s: released on %u nodes, unknown on %u", x->key, report.deleted, report.unknown);
    }
    return code;
}

/* Repeats until the command ends by itself or because of a signal to us. */
static int stand_for_election(struct exec *x)
{
    int code = under_lock(x);
    while (code == CLI_LOST && !x->is_ending) {
        say(x, "no longer elected: standing again");
        code = under_lock(x);
    }
    return code;
}

/* Reports an unsuitable node even though the others are enough. */
static void on_event(void *ctx, const struct redlock_event *event)
{
    (void)ctx;
    if (event->kind == REDLOCK_EVENT_REFUSED) {
        cli_tell("%s", event->text);
    }
}

static int run(struct exec *x)
{
    int code = signals_open(x);
    if (code != CLI_OK) {
        return code;
    }
    int r = guard_start(&x->guard, x->cli.settings.ttl_us / CHECKS_PER_TTL);
    if (r == 0) {
        r = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? 0 : -errno;
    }
    if (r != 0) {
        cli_tell("can't start the guard: %s", strerrordesc_np(-r));
        return CLI_SYSTEM;
    }
    code = cli_open(&x->cli, x->is_quiet ? NULL : on_event, &x->client);
    if (code == CLI_OK) {
        code = x->is_election ? stand_for_election(x) : under_lock(x);
    }
    redlock_close(x->client);
    return code;
}

static int run_verb(struct exec *x, int argc, char **argv)
{
    x->kill_after_ms = -1;
    x->conflict_code = CLI_HELD;
    x->signal_fd = x->timer_fd = -1;
    int code = read_options(x, argc, argv);
    if (code == CLI_GO_ON) {
        code = run(x);
    }
    guard_dismiss(&x->guard);
    cli_release(&x->cli);
    return code;
}

int cmd_exec(int argc, char **argv)
{
    return run_verb(&(struct exec){.verb = "exec"}, argc, argv);
}

int cmd_elect(int argc, char **argv)
{
    return run_verb(&(struct exec){.verb = "elect", .is_election = true, .wait_ms = -1}, argc,
                    argv);
}
