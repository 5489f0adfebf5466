/* SPDX-License-Identifier: Apache-2.0
 *
 * `redlock break`: takes a lock away from its holder. */
#include "redlock/cmd/cli.h"
#include "redlock/redlock_status.h"

#include <stdio.h>

static const struct option long_options[] = {CLI_LONG_OPTIONS, {NULL, 0, NULL, 0}};

static int tell(const struct redlock_report *report, enum redlock_result result)
{
    if (result == REDLOCK_NO_QUORUM) {
        cli_tell("not broken: deleted on %u of %zu nodes, %u did not answer, on %u another came",
                 report->deleted, report->node_count, report->unknown, report->stolen);
        return CLI_NO_QUORUM;
    }
    if (result != REDLOCK_OK) {
        cli_tell("%s", report->message);
        return result == REDLOCK_INVALID ? CLI_USAGE : CLI_SYSTEM;
    }
    if (report->deleted == 0) {
        (void)printf("it was free\n");
        return CLI_FREE;
    }
    (void)printf("broken: deleted on %u of %zu nodes\n", report->deleted, report->node_count);
    return CLI_OK;
}

int cmd_break(int argc, char **argv)
{
    struct cli cli = {0};
    struct redlock_client *client = NULL;
    struct redlock_report report = {0};
    int code = cli_read_options(&cli, "break", argc, argv, long_options, NULL, NULL);
    if (code == CLI_GO_ON && optind != argc - 1) {
        code = cli_usage_error("break", "one key, not %d", argc - optind);
    }
    if (code == CLI_GO_ON) {
        code = cli_ready(&cli);
        if (code == CLI_OK) {
            code = cli_open(&cli, NULL, &client);
        }
        if (code == CLI_OK) {
            enum redlock_result result = redlock_break(client, argv[optind], &report);
            code = tell(&report, result);
            int failure = cli_flush();
            code = failure != CLI_OK ? failure : code;
        }
    }
    redlock_close(client);
    cli_release(&cli);
    return code;
}
