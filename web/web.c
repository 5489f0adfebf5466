/* SPDX-License-Identifier: Apache-2.0 */
#include "web/web.h"

#include "base/build.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "daemon/daemon.h"
#include "daemon/process.h"
#include "web/api.h"
#include "web/server.h"

#include <signal.h>
#include <time.h>

#define SWEEP_NS 500000000

static void signals_of(sigset_t *ret)
{
    (void)sigemptyset(ret);
    (void)sigaddset(ret, SIGTERM);
    (void)sigaddset(ret, SIGINT);
    (void)sigaddset(ret, SIGHUP);
}

static enum status open_parts(struct web *w, struct server **ret_server, struct err *err)
{
    enum status st = auth_open(w->config, &w->auth, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = backends_open(w->config, &w->backends, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = shared_open(web_make_shared, w, &w->shared, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = series_open(&w->series, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = events_open(w, &w->events, err);
    if (st != STATUS_OK) {
        return st;
    }
    return server_open(w, ret_server, err);
}

static void close_parts(struct web *w, struct server *server)
{
    if (w->events != NULL) {
        events_stop(w->events);
    }
    server_close(server);
    events_close(w->events);
    series_close(w->series);
    shared_close(w->shared);
    backends_close(w->backends);
    auth_close(w->auth);
}

/* The parts borrow the configuration: of the new one, only the log settings are used, which
 * daemon_reload() has set. */
static void reload(const struct web *w)
{
    struct err err = {0};
    (void)daemon_reload(w->config, true);
    if (auth_reload(w->auth, &err) != STATUS_OK) {
        log_error("tokens_refused", LOG_TEXT("err", err.msg),
                  LOG_TEXT("action", "those from before stay"));
        return;
    }
    log_info("tokens_read", LOG_TEXT("action", "all browsers log in again"));
}

static void serve(struct web *w, struct server *server)
{
    sigset_t signals;
    const struct timespec pause = {.tv_nsec = SWEEP_NS};
    bool is_watched = notify_watchdog_us() > 0;
    int signal_number = 0;
    signals_of(&signals);
    while (signal_number != SIGTERM && signal_number != SIGINT) {
        signal_number = sigtimedwait(&signals, NULL, &pause);
        if (signal_number == SIGHUP) {
            reload(w);
        }
        server_sweep(server);
        if (is_watched) {
            notify_watchdog();
        }
    }
}

int web_main(const struct config *config)
{
    struct web w = {.config = config};
    struct server *server = NULL;
    struct err err = {0};
    sigset_t signals;
    process_protect();
    signals_of(&signals);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before any thread starts */
    (void)signal(SIGHUP, SIG_DFL);                    /* an ignored one is not waited for */
    log_info("started", LOG_TEXT("version", CLAIMD_BUILD), LOG_I64("pid", getpid()));
    enum status st = open_parts(&w, &server, &err);
    int code = st == STATUS_OK         ? DAEMON_ENDED
               : st == STATUS_CONFLICT ? DAEMON_NOT_POSSIBLE
                                       : daemon_start_exit(st);
    if (st == STATUS_OK) {
        log_info("ready", LOG_TEXT("http", server_address(server)),
                 LOG_TEXT("mode", config->web.is_operating ? "operate" : "read"));
        notify_ready();
        serve(&w, server);
        notify_stopping();
    } else {
        log_error("start_failed", LOG_TEXT("err", err.msg), LOG_TEXT("action", "exits"));
    }
    close_parts(&w, server);
    log_info("stopped", LOG_I64("exit_code", code));
    return code;
}
