/* SPDX-License-Identifier: Apache-2.0
 *
 * The header as the only include of a program of somebody else's, in C11 and in C++17. It is
 * compiled, not run: test_redlock_header.sh. */
#include <redlock.h>

static int use(const struct redlock_node *nodes, size_t count)
{
    struct redlock_options options = REDLOCK_OPTIONS_INIT;
    struct redlock *client = NULL;
    struct redlock_error error;
    int runs = 0;
    options.nodes = nodes;
    options.node_count = count;
    if (redlock_open(&options, &client, &error) != 0) {
        return error.code;
    }
    enum redlock_result result = REDLOCK_INVALID;
    REDLOCK_WITH(lock, result = redlock_try(client, "nightly-backup", 0, &lock))
    {
        runs++;
    }
    runs += result == REDLOCK_HELD;
    REDLOCK_WITH(lock, redlock_try(client, "nightly-report", 30000, &lock))
    {
        runs += redlock_is_held(lock) && redlock_state(lock) == REDLOCK_STATE_HELD;
    }
    redlock_close(client);
    return runs;
}

int main(int argc, char **argv)
{
    struct redlock_node node;
    node.url = argc > 1 ? argv[1] : "localhost";
    node.user = NULL;
    node.password = NULL;
    return use(&node, 1);
}
