/* SPDX-License-Identifier: Apache-2.0
 *
 * Way 1, broken: look whether the lock is free, then take it. Between the look and the taking
 * there is time for others to look as well, and all of them saw that it was free. */
#include "common.h"

#include <pthread.h>

#define THREADS 10
#define ROUNDS 100

static void *add_up(void *url)
{
    redisContext *redis = connect_to(url);
    for (int i = 0; i < ROUNDS; i++) {
        while (run(redis, "GET example:lock") == 1) {
        }
        run(redis, "SET example:lock 1"); /* others may be between these two lines, too */
        long long n = run(redis, "GET example:counter");
        run(redis, "SET example:counter %lld", n + 1);
        run(redis, "DEL example:lock");
    }
    redisFree(redis);
    return NULL;
}

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    pthread_t threads[THREADS];
    redisContext *redis = connect_to(urls[0]);
    run(redis, "DEL example:lock example:counter");
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, add_up, urls[0]) != 0) {
            fail("thread", "cannot be started");
        }
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    long long n = run(redis, "GET example:counter");
    printf("%d threads added 1 to a counter %d times each, under a lock of GET, then SET\n",
           THREADS, ROUNDS);
    printf("the counter says %lld instead of %d: %lld updates are lost\n", n, THREADS * ROUNDS,
           THREADS * ROUNDS - n);
    run(redis, "DEL example:lock example:counter");
    redisFree(redis);
    return 0;
}
