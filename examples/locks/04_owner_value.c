/* SPDX-License-Identifier: Apache-2.0
 *
 * Way 3: the same race as before, but the value says whose lock it is, and giving it back is
 * "delete it if the value is mine", in one step on the server. GET, then DEL from here would be two
 * steps, and the lock could change hands between them. Real owners draw random values. */
#include "common.h"

#define TTL_MS 200 /* of A; the others have more than they need */
#define LONG_TTL_MS 10000
#define COMPARE_AND_DELETE \
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

static bool take(redisContext *redis, const char *who, int ttl_ms)
{
    bool is_taken = run(redis, "SET example:lock %s NX PX %d", who, ttl_ms) == 1;
    printf("%s asks for the lock: %s\n", who, is_taken ? "has it" : "refused");
    return is_taken;
}

static void give_back(redisContext *redis, const char *who)
{
    printf("%s is done and deletes the lock if it is its own: %lld deleted\n", who,
           run(redis, "EVAL %s 1 example:lock %s", COMPARE_AND_DELETE, who));
}

int main(int argc, char **argv)
{
    redisContext *redis = connect_to(node_urls(argc, argv)[0]);
    run(redis, "DEL example:lock");

    take(redis, "A", TTL_MS);
    work_ms(TTL_MS * 3 / 2);
    printf("A still works, after %d ms under a lock of %d ms\n", TTL_MS * 3 / 2, TTL_MS);
    bool b_has_it = take(redis, "B", LONG_TTL_MS);
    give_back(redis, "A");
    bool c_has_it = take(redis, "C", LONG_TTL_MS);
    if (b_has_it && !c_has_it) {
        printf("B works alone: nobody can free its lock\n");
    }
    give_back(redis, "B");
    take(redis, "C", LONG_TTL_MS);
    give_back(redis, "C");
    printf("still open: A has worked for %d ms without a lock, beside B\n", TTL_MS / 2);
    redisFree(redis);
    return 0;
}
