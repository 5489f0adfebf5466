/* SPDX-License-Identifier: Apache-2.0
 *
 * SET NX PX with one value for everybody, given back by DEL. A is slower than its ttl: the lock is
 * B's by then, and A's late DEL takes it from B. A, B and C are three hosts, here in one process,
 * so that the order is the same each time. */
#include "common.h"

#define TTL_MS 200 /* of A; the others have more than they need */
#define LONG_TTL_MS 10000

static bool take(redisContext *redis, const char *who, int ttl_ms)
{
    bool is_taken = run(redis, "SET example:lock 1 NX PX %d", ttl_ms) == 1;
    printf("%s asks for the lock: %s\n", who, is_taken ? "has it" : "refused");
    return is_taken;
}

int main(int argc, char **argv)
{
    redisContext *redis = connect_to(node_urls(argc, argv)[0]);
    run(redis, "DEL example:lock");

    take(redis, "A", TTL_MS);
    work_ms(TTL_MS * 3 / 2);
    printf("A still works, after %d ms under a lock of %d ms\n", TTL_MS * 3 / 2, TTL_MS);
    bool b_has_it = take(redis, "B", LONG_TTL_MS);
    printf("A is done and deletes the lock: %lld deleted\n", run(redis, "DEL example:lock"));
    bool c_has_it = take(redis, "C", LONG_TTL_MS);
    if (b_has_it && c_has_it) {
        printf("B and C work at once: what A has deleted was B's lock\n");
    }
    run(redis, "DEL example:lock");
    redisFree(redis);
    return 0;
}
