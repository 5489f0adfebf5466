/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock VERB …: locks over independent Redis masters for shells and crontabs; redlock(1). */
#include "redlock/cmd/cli.h"
#include "redlock/redlock_status.h"

#include <stdio.h>

static const struct verb {
    const char *name;
    cli_verb_fn *run;
} verbs[] = {{"exec", cmd_exec},   {"elect", cmd_elect}, {"status", cmd_status},
             {"break", cmd_break}, {"nodes", cmd_nodes}, {"bench", cmd_bench}};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--version") == 0) {
        (void)printf("redlock %s\n", redlock_version());
        return cli_flush();
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
        (strcmp(word, "help") == 0 && argc == 2)) {
        cli_help(NULL);
        return cli_flush();
    }
    bool is_help = strcmp(word, "help") == 0 && argc == 3;
    const struct verb *v = find_verb(is_help ? argv[2] : word);
    if (v == NULL) {
        cli_tell("'%s' is not a verb: exec, elect, status, break, nodes, bench or help",
                 is_help ? argv[2] : word);
        return CLI_USAGE;
    }
    if (is_help) {
        cli_help(v->name);
        return cli_flush();
    }
    return v->run(argc - 1, argv + 1);
}
