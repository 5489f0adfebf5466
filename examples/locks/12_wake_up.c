/* SPDX-License-Identifier: Apache-2.0
 *
 * Who waits for a lock does not poll: it stands in line, and the release hands the lock over to the
 * first one. So waiting costs next to nothing, and ends at once. */
#include "common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HAND_OVERS 20
#define QUIET_TRIES 100
#define HOLD_MS 100

static const struct redlock_request request = {.key = "example:wake-up", .wait_ms = -1};

struct waiter {
    struct redlock_client *client;
    int64_t won_us;
};

static void *wait_for_it(void *arg)
{
    struct waiter *waiter = arg;
    struct redlock_lock *lock = acquire(waiter->client, &request);
    waiter->won_us = now_us();
    (void)redlock_unlock(lock, &(struct redlock_report){0});
    return NULL;
}

static long commands(redisContext *redis)
{
    redisReply *reply = redisCommand(redis, "INFO stats");
    const char *line = reply == NULL ? NULL : strstr(reply->str, "total_commands_processed:");
    long n = line == NULL ? -1 : strtol(strchr(line, ':') + 1, NULL, 10);
    freeReplyObject(reply);
    return n;
}

/* Until the waiter has asked, was refused, and waits: nothing but our INFO comes for a while. */
static long commands_once_quiet(redisContext *redis)
{
    long before = commands(redis);
    for (int i = 0; i < QUIET_TRIES; i++) {
        work_ms(HOLD_MS);
        long now = commands(redis);
        if (now - before == 1) {
            return now;
        }
        before = now;
    }
    return before;
}

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    redisContext *redis = connect_to(urls[0]);
    struct redlock_client *holder = open_client(urls);
    struct waiter waiter = {.client = open_client(urls)};
    int64_t sum_us = 0;
    int64_t worst_us = 0;
    long waiting = 0;
    for (int i = 0; i < HAND_OVERS; i++) {
        pthread_t thread;
        struct redlock_lock *lock = acquire(holder, &request);
        if (pthread_create(&thread, NULL, wait_for_it, &waiter) != 0) {
            fail("thread", "cannot be started");
        }
        long before = commands_once_quiet(redis);
        work_ms(HOLD_MS);
        waiting += commands(redis) - before - 1; /* the INFO itself */
        int64_t released_us = now_us();
        (void)redlock_unlock(lock, NULL);
        (void)pthread_join(thread, NULL);
        int64_t took_us = waiter.won_us - released_us;
        sum_us += took_us;
        worst_us = took_us > worst_us ? took_us : worst_us;
    }
    printf("%d hand-overs: the waiter had the lock %lld us after the release, at worst %lld us\n",
           HAND_OVERS, (long long)sum_us / HAND_OVERS, (long long)worst_us);
    printf("it waited for %d ms in all, which cost %ld commands of a node\n", HAND_OVERS * HOLD_MS,
           waiting);
    redlock_close(waiter.client);
    redlock_close(holder);
    redisFree(redis);
    return 0;
}
