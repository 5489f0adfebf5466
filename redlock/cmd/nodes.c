/* SPDX-License-Identifier: Apache-2.0
 *
 * `redlock nodes`: shows each node and whether it has a vote. */
#include "redlock/cmd/session.h"

#include <inttypes.h>
#include <stdio.h>

#define CELL_SIZE 40

static const struct option long_options[] = {
    CLI_LONG_OPTIONS, {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};

struct cells {
    char server[CELL_SIZE];
    char quarantine[CELL_SIZE];
    char clock[CELL_SIZE];
};

static struct cells cells_of(const struct redlock_node_info *info)
{
    struct cells c = {.server = "-", .quarantine = "-", .clock = "-"};
    if (info->server[0] != '\0') {
        (void)snprintf(c.server, sizeof c.server, "%s %s", info->server, info->version);
    }
    if (info->quarantine_ms > 0) {
        (void)snprintf(c.quarantine, sizeof c.quarantine, "%.1f s",
                       1e-3 * (double)info->quarantine_ms);
    }
    if (info->clock_offset_us != INT64_MIN) {
        (void)snprintf(c.clock, sizeof c.clock, "%+.1f ms", 1e-3 * (double)info->clock_offset_us);
    }
    return c;
}

static const char *yes(bool is_so)
{
    return is_so ? "yes" : "no";
}

static void print_text(const struct redlock_node_info *infos, size_t count, size_t voting,
                       const char *fingerprint)
{
    static const char format[] = "%-*s %-14s %-7s %-12s %-3s %-4s %-6s %-10s %-9s %s\n";
    int width = cli_name_width(infos, count);
    (void)printf(format, width, "NODE", "SERVER", "ROLE", "POLICY", "UP", "VOTE", "NATIVE",
                 "QUARANTINE", "CLOCK", "WHY NOT");
    for (size_t i = 0; i < count; i++) {
        const struct redlock_node_info *n = &infos[i];
        struct cells c = cells_of(n);
        bool is_known = n->server[0] != '\0';
        (void)printf(format, width, n->name, c.server,
                     !is_known      ? "-"
                     : n->is_master ? "master"
                                    : "replica",
                     n->evict_policy[0] != '\0' ? n->evict_policy : "-", yes(n->is_up),
                     yes(n->may_vote), yes(n->has_native), c.quarantine, c.clock,
                     n->may_vote ? "" : n->why);
    }
    (void)printf("%zu of %zu may vote, a quorum is %zu; fingerprint of the list: %s\n", voting,
                 count, count / 2 + 1, fingerprint);
}

static void print_field(const char *name, const char *text)
{
    (void)printf(", \"%s\": ", name);
    cli_json_text(text);
}

static void print_json(const struct redlock_node_info *infos, size_t count, size_t voting,
                       const char *fingerprint)
{
    (void)printf("{\"fingerprint\": \"%s\", \"quorum\": %zu, \"voting\": %zu, \"nodes\": [",
                 fingerprint, count / 2 + 1, voting);
    for (size_t i = 0; i < count; i++) {
        const struct redlock_node_info *n = &infos[i];
        (void)printf("%s{\"name\": ", i == 0 ? "" : ", ");
        cli_json_text(n->name);
        print_field("server", n->server);
        print_field("version", n->version);
        print_field("run_id", n->run_id);
        print_field("evict_policy", n->evict_policy);
        print_field("why", n->why);
        (void)printf(", \"is_up\": %s, \"may_vote\": %s, \"is_master\": %s, \"has_native\": %s"
                     ", \"uptime_ms\": %" PRId64 ", \"quarantine_ms\": %" PRId64
                     ", \"clock_offset_us\": ",
                     n->is_up ? "true" : "false", n->may_vote ? "true" : "false",
                     n->is_master ? "true" : "false", n->has_native ? "true" : "false",
                     n->uptime_ms, n->quarantine_ms);
        if (n->clock_offset_us == INT64_MIN) {
            (void)printf("null}");
        } else {
            (void)printf("%" PRId64 "}", n->clock_offset_us);
        }
    }
    (void)printf("]}\n");
}

static int show(const struct cli *cli, const struct session *s)
{
    struct redlock_node_info infos[REDLOCK_NODES_MAX];
    char fingerprint[REDLOCK_FINGERPRINT_SIZE];
    struct redlock_report report = {0};
    size_t voting = redlock_async_voting(s->lock);
    if (redlock_fingerprint(cli->options.nodes, fingerprint, &report) != REDLOCK_OK) {
        cli_tell("%s", report.message);
        return CLI_NODES;
    }
    for (size_t i = 0; i < cli->settings.node_count; i++) {
        redlock_async_node(s->lock, i, &infos[i]);
    }
    if (cli->is_json) {
        print_json(infos, cli->settings.node_count, voting, fingerprint);
    } else {
        print_text(infos, cli->settings.node_count, voting, fingerprint);
    }
    int code = cli_flush();
    return code != CLI_OK ? code : redlock_async_has_quorum(s->lock) ? CLI_OK : CLI_NO_QUORUM;
}

int cmd_nodes(int argc, char **argv)
{
    struct cli cli = {0};
    struct session session = {0};
    int code = cli_read_options(&cli, "nodes", argc, argv, long_options, NULL, NULL);
    if (code == CLI_GO_ON && optind != argc) {
        code = cli_usage_error("nodes", "it takes no argument ('%s')", argv[optind]);
    }
    if (code == CLI_GO_ON) {
        code = cli_ready(&cli);
        if (code == CLI_OK) {
            code = session_open(&session, &cli);
        }
        if (code == CLI_OK) {
            code = show(&cli, &session);
        }
    }
    session_close(&session);
    cli_release(&cli);
    return code;
}
