/* SPDX-License-Identifier: Apache-2.0
 *
 * A user's program that includes only these headers, in C11 and in C++17. It is
 * compiled, not run: test_redlock_header.sh. */
#include <redlock.h>
#include <redlock_status.h>

static int use(const struct redlock_options *options)
{
    struct redlock_client *client = NULL;
    enum redlock_result result = redlock_open(options, &client, NULL);
    int runs = 0;
    REDLOCK_WITH(lock, result = redlock_try(client, "nightly-backup", &lock))
    {
        runs++;
    }
    runs += result == REDLOCK_HELD;
    REDLOCK_WITH(lock, redlock_lock_for(client, "nightly-report", 30000, &lock))
    {
        runs += redlock_left_ms(lock) > 0 && redlock_state(lock) == REDLOCK_STATE_HELD;
    }
    redlock_close(client);
    return runs + (redlock_version()[0] == '0');
}

int main(int argc, char **argv)
{
    static struct redlock_options options; /* C has {0} for it, C++ has {} */
    options.nodes = argc > 1 ? argv[1] : "localhost";
    return use(&options);
}
