/* SPDX-License-Identifier: Apache-2.0
 *
 * Way 2: SETNX looks and takes in one step. Without an expiry the lock dies with its holder: it
 * stays for ever. SET with NX and PX says in the same step when it ends. */
#include "common.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define TTL_MS 1000
#define PATIENCE_MS 2000

/* Another process takes the lock, and is killed with it. */
static void take_and_die(const char *url, const char *command)
{
    pid_t pid = fork();
    if (pid == 0) {
        redisContext *redis = connect_to(url);
        if (run(redis, command, TTL_MS) != 1) {
            fail(command, "the lock is not free");
        }
        (void)raise(SIGKILL);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || WTERMSIG(status) != SIGKILL) {
        fail(command, "no holder that was killed");
    }
}

/* How long it takes until another process has the lock; −1 = longer than we care to wait. */
static int64_t wait_for(redisContext *redis)
{
    int64_t start_us = now_us();
    while (run(redis, "SET example:lock 2 NX PX %d", TTL_MS) != 1) {
        if (now_us() - start_us > PATIENCE_MS * 1000) {
            return -1;
        }
        work_ms(10);
    }
    return (now_us() - start_us) / 1000;
}

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    redisContext *redis = connect_to(urls[0]);
    run(redis, "DEL example:lock");

    take_and_die(urls[0], "SETNX example:lock 1");
    if (wait_for(redis) < 0) {
        printf("SETNX: its holder is dead, and after %d ms the lock is held still; PTTL %lld, for "
               "ever\n",
               PATIENCE_MS, run(redis, "PTTL example:lock"));
    }
    run(redis, "DEL example:lock");

    take_and_die(urls[0], "SET example:lock 1 NX PX %d");
    printf("SET NX PX %d: its holder is dead, and the next one had the lock after %lld ms\n",
           TTL_MS, (long long)wait_for(redis));
    run(redis, "DEL example:lock");
    redisFree(redis);
    return 0;
}
