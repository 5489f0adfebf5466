/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts shared by the verbs of the `redlock` command: exit codes, the options that describe the
 * nodes, messages and JSON. redlock(1) is the reference. */
#ifndef CLAIMD_REDLOCK_CMD_CLI_H
#define CLAIMD_REDLOCK_CMD_CLI_H

#include "base/cleanup.h"
#include "redlock/client/settings.h"
#include "redlock/redlock.h"

#include <getopt.h>

/* Mostly codes of sysexits(3), which commands seldom use; 126, 127 and 128 + signal are as in a
 * shell. */
enum cli_exit {
    CLI_GO_ON = -1, /* do not exit */
    CLI_OK = 0,
    CLI_FREE = 1,       /* status: the lock is free */
    CLI_SPLIT = 2,      /* status: no client holds a quorum */
    CLI_USAGE = 64,     /* EX_USAGE */
    CLI_NO_QUORUM = 69, /* EX_UNAVAILABLE */
    CLI_SYSTEM = 71,    /* EX_OSERR: no process, no memory, no descriptor */
    CLI_LOST = 74,      /* EX_IOERR */
    CLI_HELD = 75,      /* EX_TEMPFAIL */
    CLI_NODES = 78,     /* EX_CONFIG: the nodes are unsuitable */
    CLI_CANNOT_RUN = 126,
    CLI_NOT_FOUND = 127,
    CLI_SIGNAL = 128
};

#define CLI_PASSWORD_SIZE 256

struct cli {
    struct redlock_options options;
    struct settings settings; /* cli_ready() fills it from the options */
    const char *password_file;
    char password[CLI_PASSWORD_SIZE];
    bool is_json;
    bool is_verbose;
    bool sees_lines; /* the session also reads the lines of waiting clients */
};

/* Codes of long options; those of a verb begin at CLI_OPT_OWN. */
enum cli_option {
    CLI_OPT_NODES = 256,
    CLI_OPT_USER,
    CLI_OPT_PASSWORD_FILE,
    CLI_OPT_CA_FILE,
    CLI_OPT_CERT_FILE,
    CLI_OPT_KEY_FILE,
    CLI_OPT_TTL,
    CLI_OPT_TTL_MAX,
    CLI_OPT_NODE_TIMEOUT,
    CLI_OPT_TRUST_FRESH,
    CLI_OPT_OWN
};
#define CLI_LONG_OPTIONS                                                   \
    {"nodes", required_argument, NULL, CLI_OPT_NODES},                     \
        {"user", required_argument, NULL, CLI_OPT_USER},                   \
        {"password-file", required_argument, NULL, CLI_OPT_PASSWORD_FILE}, \
        {"ca-file", required_argument, NULL, CLI_OPT_CA_FILE},             \
        {"cert-file", required_argument, NULL, CLI_OPT_CERT_FILE},         \
        {"key-file", required_argument, NULL, CLI_OPT_KEY_FILE},           \
        {"ttl", required_argument, NULL, CLI_OPT_TTL},                     \
        {"ttl-max", required_argument, NULL, CLI_OPT_TTL_MAX},             \
        {"node-timeout", required_argument, NULL, CLI_OPT_NODE_TIMEOUT},   \
        {"trust-fresh", no_argument, NULL, CLI_OPT_TRUST_FRESH},           \
        {"verbose", no_argument, NULL, 'v'},                               \
    {                                                                      \
        "help", no_argument, NULL, 'h'                                     \
    }

/* Handles an option of a verb's own; `ctx` is the verb's. Returns 0 or an exit code. */
typedef int cli_option_fn(void *ctx, int code, const char *value);

/* Reads options and arguments in any order; afterwards the arguments are argv[optind…]. Returns
 * CLI_GO_ON, or an exit code if help was requested or something is wrong. `take` may be NULL. */
int cli_read_options(struct cli *cli, const char *verb, int argc, char **argv,
                     const struct option *options, cli_option_fn *take, void *ctx);

/* Each of these returns 0, or an exit code after writing the reason to stderr. */
int cli_take_option(struct cli *cli, const char *verb, int code, const char *value);
int cli_take_duration(const char *option, const char *value, int64_t min_ms, int64_t max_ms,
                      int64_t *ret_ms);
int cli_take_number(const char *option, const char *value, int64_t min, int64_t max,
                    int64_t *ret_number);
/* Reads the environment and the password file, and checks everything. Call it after the options. */
int cli_ready(struct cli *cli);
typedef void cli_event_fn(void *ctx, const struct redlock_event *event);
/* Opens a client; a majority of suitable nodes is enough. `on_event` may be NULL. */
int cli_open(const struct cli *cli, cli_event_fn *on_event, struct redlock_client **ret_client);
void cli_release(struct cli *cli);

/* Writes "redlock: …" to stderr, with one write(2). */
void cli_tell(const char *format, ...) PRINTF_LIKE(1, 2);
int cli_usage_error(const char *verb, const char *format, ...) PRINTF_LIKE(2, 3);
void cli_help(const char *verb); /* writes to stdout; NULL = help of the command itself */
int cli_flush(void);             /* flushes stdout; returns 0 or CLI_SYSTEM */

/* width of the column of names */
int cli_name_width(const struct redlock_node_info *infos, size_t count);
void cli_json_text(const char *text); /* writes it quoted and escaped to stdout */

typedef int cli_verb_fn(int argc, char **argv);
cli_verb_fn cmd_exec;
cli_verb_fn cmd_elect;
cli_verb_fn cmd_status;
cli_verb_fn cmd_nodes;
cli_verb_fn cmd_bench;
cli_verb_fn cmd_break;

/* ---- wait_for_lock.c ---- */

struct lock_wait {
    struct redlock_client *client;
    struct redlock_request request;
    int signal_fd;
    int done_fd;
    int signal_number; /* the INT, TERM, HUP or QUIT that ended the wait; 0 = none */
    struct redlock_lock *lock;
    struct redlock_report report;
};

/* Blocks until there is a result. A signal cancels the wait; job control may stop the process
 * meanwhile. */
enum redlock_result wait_for_lock(struct lock_wait *h);

#endif
