/* SPDX-License-Identifier: Apache-2.0
 *
 * 3000 pieces, 5000 buyers, two shops. A buyer that has the lock looks at the stock and takes one
 * piece if there is one. The stock is kept on one of the masters, by plain GET and SET: without the
 * lock pieces would be sold twice. */
#include "common.h"

#include <pthread.h>

#define STOCK 3000
#define BUYERS 5000
#define TILLS 10 /* threads; each serves its share of the buyers, one after the other */

struct till {
    pthread_t thread;
    struct redlock_client *shop; /* half of the tills each */
    const char *url;
    int sold;
    int sent_away;
    int lowest;
};

static void *run_till(void *arg)
{
    struct till *till = arg;
    redisContext *redis = connect_to(till->url);
    const struct redlock_request request = {.key = "example:stock:lock", .wait_ms = -1};
    for (int i = 0; i < BUYERS / TILLS; i++) {
        struct redlock_lock *lock = acquire(till->shop, &request);
        int stock = (int)run(redis, "GET example:stock");
        if (stock > 0) {
            run(redis, "SET example:stock %d", stock - 1);
            till->sold++;
        } else {
            till->sent_away++;
        }
        till->lowest = stock < till->lowest ? stock : till->lowest;
        (void)redlock_unlock(lock, NULL);
    }
    redisFree(redis);
    return NULL;
}

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    struct redlock_client *shops[] = {open_client(urls), open_client(urls)};
    struct till tills[TILLS];
    int sold = 0;
    int sent_away = 0;
    int lowest = STOCK;
    redisContext *redis = connect_to(urls[0]);
    run(redis, "SET example:stock %d", STOCK);
    for (int i = 0; i < TILLS; i++) {
        tills[i] = (struct till){.shop = shops[i % 2], .url = urls[0], .lowest = STOCK};
        if (pthread_create(&tills[i].thread, NULL, run_till, &tills[i]) != 0) {
            fail("thread", "cannot be started");
        }
    }
    for (int i = 0; i < TILLS; i++) {
        (void)pthread_join(tills[i].thread, NULL);
        sold += tills[i].sold;
        sent_away += tills[i].sent_away;
        lowest = tills[i].lowest < lowest ? tills[i].lowest : lowest;
    }
    printf("%d pieces, %d buyers: %d sold, %d sent away, the stock is %lld, its lowest was %d\n",
           STOCK, BUYERS, sold, sent_away, run(redis, "GET example:stock"), lowest);
    run(redis, "DEL example:stock");
    redisFree(redis);
    redlock_close(shops[0]);
    redlock_close(shops[1]);
    return 0;
}
