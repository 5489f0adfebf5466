/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-runner: runs handlers for claimd-worker, one job at a time, in a process that may be
 * killed at any moment (protocol/protocol.h). */
#include "base/build.h"
#include "base/log.h"
#include "base/parse.h"
#include "runner/output.h"
#include "runner/runner.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options {
    pid_t parent;
    struct plugin_set_options plugins;
    bool list;
    bool log_json;
};

static const char USAGE[] =
    "usage: claimd-runner --parent PID --plugins DIR [--owners UID,…] [--without FILE]… "
    "[--handlers DIR [--start FILE]…] [--commands JSON] [--log-json]\n"
    "                                             (started by claimd-worker)\n"
    "       claimd-runner --list --plugins DIR [--handlers DIR] [--owners UID,…]\n"
    "                                             print what the plugins serve, as JSON\n"
    "       claimd-runner --version\n";

static _Noreturn void leave(int code)
{
    (void)fflush(stdout);
    _exit(code); /* no atexit hooks or destructors of plugins: they had fini */
}

static _Noreturn void refuse(const char *option, const struct err *err)
{
    (void)fprintf(stderr, "claimd-runner: %s: %s\n", option, err->msg);
    leave(EXIT_USAGE);
}

static void add_file(const char *option, const char *ret_list[PLUGINS_MAX], size_t *count)
{
    struct err err = {0};
    if (*count == PLUGINS_MAX) {
        (void)err_fail(&err, STATUS_LIMIT, "more than %d files", PLUGINS_MAX);
        refuse(option, &err);
    }
    ret_list[(*count)++] = optarg;
}

static const struct option OPTIONS[] = {
    {"parent", required_argument, NULL, 'p'},   {"plugins", required_argument, NULL, 'd'},
    {"owners", required_argument, NULL, 'o'},   {"without", required_argument, NULL, 'w'},
    {"handlers", required_argument, NULL, 'H'}, {"start", required_argument, NULL, 's'},
    {"commands", required_argument, NULL, 'C'}, {"list", no_argument, NULL, 'l'},
    {"log-json", no_argument, NULL, 'j'},       {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};

static struct options parse_options(int argc, char **argv)
{
    struct options o = {0};
    struct err err = {0};
    int64_t number = 0;
    int c = 0;
    while ((c = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        switch (c) {
        case 'p':
            if (parse_i64(optarg, strlen(optarg), 1, INT32_MAX, &number, &err) != STATUS_OK) {
                refuse("--parent", &err);
            }
            o.parent = (pid_t)number;
            break;
        case 'd':
            o.plugins.directory = optarg;
            break;
        case 'o':
            if (plugin_owners_parse(optarg, &o.plugins.owners, &err) != STATUS_OK) {
                refuse("--owners", &err);
            }
            break;
        case 'w':
            add_file("--without", o.plugins.without, &o.plugins.without_count);
            break;
        case 'H':
            o.plugins.handlers = optarg;
            break;
        case 'C':
            o.plugins.commands = optarg;
            break;
        case 's':
            add_file("--start", o.plugins.doubtful, &o.plugins.doubtful_count);
            break;
        case 'l':
            o.list = true;
            break;
        case 'j':
            o.log_json = true;
            break;
        case 'v':
            (void)printf("claimd-runner %s\n", CLAIMD_BUILD);
            leave(EXIT_DONE);
        case 'h':
            (void)fputs(USAGE, stdout);
            leave(EXIT_DONE);
        default:
            (void)fputs(USAGE, stderr);
            leave(EXIT_USAGE);
        }
    }
    if (optind != argc || o.plugins.directory == NULL || (o.parent == 0 && !o.list)) {
        (void)fputs(USAGE, stderr);
        leave(EXIT_USAGE);
    }
    return o;
}

static enum status map_page(struct runner_page **ret_page, struct err *err)
{
    struct stat s;
    if (fstat(RUNNER_FD_FRAMES, &s) != 0 || !S_ISSOCK(s.st_mode)) {
        return err_fail(err, STATUS_INVALID, "descriptor %d is not a socket", RUNNER_FD_FRAMES);
    }
    if (fstat(RUNNER_FD_PAGE, &s) != 0 || s.st_size < RUNNER_PAGE_SIZE) {
        return err_fail(err, STATUS_INVALID, "descriptor %d is not a shared page", RUNNER_FD_PAGE);
    }
    void *page =
        mmap(NULL, RUNNER_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, RUNNER_FD_PAGE, 0);
    if (page == MAP_FAILED) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot map the page");
    }
    for (int fd = RUNNER_FD_FRAMES; fd <= RUNNER_FD_LAST; fd++) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    (void)fcntl(RUNNER_FD_FRAMES, F_SETFL, fcntl(RUNNER_FD_FRAMES, F_GETFL) & ~O_NONBLOCK);
    *ret_page = (struct runner_page *)page;
    return STATUS_OK;
}

static enum status run(const struct options *o, struct err *err)
{
    struct runner_page *page = NULL;
    enum status st = map_page(&page, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = output_start(page, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct plugin_set plugins;
    struct plugin_set_options with_page = o->plugins;
    with_page.page = page;
    st = plugin_set_open(&plugins, &with_page, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (chdir("/") != 0) {
        plugin_set_close(&plugins);
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "chdir");
    }
    static struct watchdog watchdog; /* its thread outlives this frame */
    st = watchdog_start(&watchdog, page, o->parent, err);
    if (st == STATUS_OK) {
        st = serve(page, &plugins, &watchdog, err);
    }
    plugin_set_close(&plugins);
    return st;
}

static enum status run_confined(const struct options *o, struct err *err)
{
    enum status st = confine_process(o->parent, o->list ? STDERR_FILENO : RUNNER_FD_LAST, err);
    if (st != STATUS_OK) {
        return st;
    }
    return o->list ? list_plugins(&o->plugins, err) : run(o, err);
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv);
    log_init("claimd-runner", LOG_INFO);
    log_set(LOG_INFO, o.log_json ? LOG_JSON : LOG_LOGFMT);
    struct err err = {0};
    enum status st = run_confined(&o, &err);
    if (st != STATUS_OK) {
        log_error("runner_ended", LOG_TEXT("err", err.msg));
    }
    leave(st == STATUS_OK ? EXIT_DONE : EXIT_FAILED);
}
