/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/cmd/cli.h"

#include "base/clock.h"
#include "base/parse.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_SIZE 1024
#define NAME "redlock: "
#define TTL_MIN_MS 1000

void cli_tell(const char *format, ...)
{
    static const size_t name_len = sizeof NAME - 1;
    char line[LINE_SIZE] = NAME;
    size_t at = name_len;
    size_t skip = 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line + at, sizeof line - at - 1, format, args);
    va_end(args);
    size_t room = sizeof line - at - 2;
    at += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room;
    line[at++] = '\n';
    if (strncmp(line + name_len, NAME, name_len) == 0) {
        skip = name_len; /* the library's errors begin with the name already */
    }
    (void)!write(STDERR_FILENO, line + skip, at - skip);
}

int cli_usage_error(const char *verb, const char *format, ...)
{
    char text[LINE_SIZE / 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli_tell("%s: %s (redlock help %s)", verb, text, verb);
    return CLI_USAGE;
}

int cli_flush(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_tell("can't write the output");
        return CLI_SYSTEM;
    }
    return CLI_OK;
}

void cli_json_text(const char *text)
{
    (void)fputc('"', stdout);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            (void)printf("\\%c", *p);
        } else if (*p < ' ') {
            (void)printf("\\u%04x", *p);
        } else {
            (void)fputc(*p, stdout);
        }
    }
    (void)fputc('"', stdout);
}

int cli_name_width(const struct redlock_node_info *infos, size_t count)
{
    size_t width = strlen("NODE");
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(infos[i].name);
        width = len > width ? len : width;
    }
    return (int)width;
}

int cli_take_duration(const char *option, const char *value, int64_t min_ms, int64_t max_ms,
                      int64_t *ret_ms)
{
    struct err err = {0};
    int64_t us = 0;
    if (parse_duration_us(value, &us, &err) != STATUS_OK) {
        cli_tell("--%s: %s", option, err.msg);
        return CLI_USAGE;
    }
    if (us / US_PER_MS < min_ms || us / US_PER_MS > max_ms) {
        cli_tell("--%s: %s is not within %" PRId64 "ms and %" PRId64 "ms", option, value, min_ms,
                 max_ms);
        return CLI_USAGE;
    }
    *ret_ms = us / US_PER_MS;
    return CLI_OK;
}

int cli_take_number(const char *option, const char *value, int64_t min, int64_t max,
                    int64_t *ret_number)
{
    struct err err = {0};
    if (parse_i64(value, strlen(value), min, max, ret_number, &err) != STATUS_OK) {
        cli_tell("--%s: %s", option, err.msg);
        return CLI_USAGE;
    }
    return CLI_OK;
}

int cli_take_option(struct cli *cli, const char *verb, int code, const char *value)
{
    switch (code) {
    case CLI_OPT_NODES:
        cli->options.nodes = value;
        return CLI_OK;
    case CLI_OPT_USER:
        cli->options.user = value;
        return CLI_OK;
    case CLI_OPT_PASSWORD_FILE:
        cli->password_file = value;
        return CLI_OK;
    case CLI_OPT_CA_FILE:
        cli->options.ca_file = value;
        return CLI_OK;
    case CLI_OPT_CERT_FILE:
        cli->options.cert_file = value;
        return CLI_OK;
    case CLI_OPT_KEY_FILE:
        cli->options.key_file = value;
        return CLI_OK;
    case CLI_OPT_TTL:
        return cli_take_duration("ttl", value, TTL_MIN_MS, REDLOCK_TTL_MAX_MS,
                                 &cli->options.ttl_ms);
    case CLI_OPT_TTL_MAX:
        return cli_take_duration("ttl-max", value, TTL_MIN_MS, REDLOCK_TTL_MAX_MS,
                                 &cli->options.ttl_max_ms);
    case CLI_OPT_NODE_TIMEOUT:
        return cli_take_duration("node-timeout", value, 1, REDLOCK_TTL_MAX_MS,
                                 &cli->options.node_timeout_ms);
    case CLI_OPT_TRUST_FRESH:
        cli->options.trust_fresh = true;
        return CLI_OK;
    case 'v':
        cli->is_verbose = true;
        return CLI_OK;
    case 'j':
        cli->is_json = true;
        return CLI_OK;
    default:
        return cli_usage_error(verb, "an unknown option, or its value is missing");
    }
}

int cli_read_options(struct cli *cli, const char *verb, int argc, char **argv,
                     const struct option *options, cli_option_fn *take, void *ctx)
{
    int code = 0;
    opterr = 0;
    while ((code = getopt_long(argc, argv, "hv", options, NULL)) != -1) {
        int failure = CLI_OK;
        if (code == 'h') {
            cli_help(verb);
            return cli_flush();
        }
        if (code == '?') {
            failure = cli_usage_error(verb, "%s: no such option, or its value is missing",
                                      argv[optind - 1]);
        } else if (code >= CLI_OPT_OWN && take != NULL) {
            failure = take(ctx, code, optarg);
        } else {
            failure = cli_take_option(cli, verb, code, optarg);
        }
        if (failure != CLI_OK) {
            return failure;
        }
    }
    return CLI_GO_ON;
}

/* ---- the nodes ---- */

/* Reads the first line of the file. */
static int read_password(struct cli *cli)
{
    autoclose int fd = open(cli->password_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, cli->password, sizeof cli->password - 1);
    if (n < 0) {
        cli_tell("--password-file: %s: %s", cli->password_file, strerrordesc_np(errno));
        return CLI_USAGE;
    }
    cli->password[n] = '\0';
    size_t len = strcspn(cli->password, "\r\n");
    if (len == 0 || len == sizeof cli->password - 1) {
        cli_tell("--password-file: %s: its first line must have 1 to %d characters",
                 cli->password_file, CLI_PASSWORD_SIZE - 2);
        return CLI_USAGE;
    }
    cli->password[len] = '\0';
    return CLI_OK;
}

static int find_password(struct cli *cli)
{
    const char *text = getenv("REDLOCK_PASSWORD");
    if (cli->password_file != NULL) {
        return read_password(cli);
    }
    if (text != NULL && strlen(text) >= sizeof cli->password) {
        cli_tell("REDLOCK_PASSWORD: more than %d characters", CLI_PASSWORD_SIZE - 1);
        return CLI_USAGE;
    }
    (void)snprintf(cli->password, sizeof cli->password, "%s", text != NULL ? text : "");
    return CLI_OK;
}

/* Unlike the library, the command uses the user and password of the environment even with
 * --nodes. */
int cli_ready(struct cli *cli)
{
    struct redlock_options *o = &cli->options;
    struct err err = {0};
    int code = find_password(cli);
    if (code != CLI_OK) {
        return code;
    }
    o->nodes = o->nodes != NULL ? o->nodes : getenv("REDLOCK_NODES");
    o->user = o->user != NULL ? o->user : getenv("REDLOCK_USER");
    o->password = cli->password[0] != '\0' ? cli->password : NULL;
    if (o->nodes == NULL) {
        cli_tell("no nodes: give --nodes URL,URL,… or set REDLOCK_NODES");
        return CLI_USAGE;
    }
    enum status st = settings_read(o, &cli->settings, &err);
    if (st != STATUS_OK) {
        cli_tell("%s", err.msg);
        return st == STATUS_INVALID ? CLI_USAGE : CLI_SYSTEM;
    }
    return CLI_OK;
}

void cli_release(struct cli *cli)
{
    explicit_bzero(cli->password, sizeof cli->password);
    free(TAKE(cli->settings.list));
}

int cli_open(const struct cli *cli, cli_event_fn *on_event, struct redlock_client **ret_client)
{
    struct redlock_report report = {0};
    struct redlock_options options = cli->options;
    options.majority_opens = true;
    options.on_event = on_event;
    enum redlock_result result = redlock_open(&options, ret_client, &report);
    if (result == REDLOCK_OK) {
        return CLI_OK;
    }
    cli_tell("%s", report.message);
    return result == REDLOCK_INVALID ? CLI_NODES : CLI_SYSTEM;
}
