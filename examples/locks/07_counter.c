/* SPDX-License-Identifier: Apache-2.0
 *
 * Ten threads add to one counter, each by reading it and writing back one more. Under one lock they
 * count right. */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 10
#define ROUNDS 50

static struct redlock_client *client; /* one for all threads */
static atomic_int counter;

static void add_one(void)
{
    int n = atomic_load(&counter);
    work_ms(1); /* as if it took a while to compute */
    atomic_store(&counter, n + 1);
}

static void *add_without_lock(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        add_one();
    }
    return unused;
}

static void *add_with_lock(void *unused)
{
    const struct redlock_request request = {.key = "example:counter", .wait_ms = -1};
    for (int i = 0; i < ROUNDS; i++) {
        struct redlock_lock *lock = acquire(client, &request);
        add_one();
        (void)redlock_unlock(lock, NULL);
    }
    return unused;
}

static void run_threads(void *body(void *), const char *how)
{
    pthread_t threads[THREADS];
    atomic_store(&counter, 0);
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, body, NULL) != 0) {
            fail("thread", "cannot be started");
        }
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    printf("%d threads added 1 %d times each %s: %d of %d\n", THREADS, ROUNDS, how,
           atomic_load(&counter), THREADS * ROUNDS);
}

int main(int argc, char **argv)
{
    client = open_client(node_urls(argc, argv));
    run_threads(add_without_lock, "without a lock");
    run_threads(add_with_lock, "under the lock");
    redlock_close(client);
    return 0;
}
