/* SPDX-License-Identifier: Apache-2.0
 *
 * Many locks in one round to the nodes: each key with a result of its own, or all of them or
 * none. Two hosts want overlapping sets. */
#include "common.h"

#include <string.h>

#define KEYS 100
#define TAKEN 10 /* of them, by another host */

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    struct redlock_client *client = open_client(urls);
    struct redlock_client *other = open_client(urls);
    static char names[KEYS][32];
    struct redlock_key keys[KEYS];
    struct redlock_lock *theirs[TAKEN];
    struct redlock_lock *ours[KEYS];
    static struct redlock_report reports[KEYS];
    struct redlock_request request = {.keys = keys, .count = TAKEN, .each = true, .ttl_ms = 10000};
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(names[i], sizeof names[i], "example:order:%d", i);
        keys[i] = (struct redlock_key){.bytes = names[i]};
    }
    (void)redlock_acquire(other, &request, theirs, NULL);

    int64_t start_us = now_us();
    request.count = KEYS;
    (void)redlock_acquire(client, &request, ours, reports);
    int won = 0;
    int refused = 0;
    for (int i = 0; i < KEYS; i++) {
        won += reports[i].result == REDLOCK_OK;
        refused += reports[i].result == REDLOCK_HELD;
    }
    printf("%d keys in one round of %lld us: %d won, %d held by another\n", KEYS,
           (long long)(now_us() - start_us), won, refused);
    for (int i = 0; i < KEYS; i++) {
        (void)redlock_unlock(ours[i], &(struct redlock_report){0});
    }

    struct redlock_lock *all = NULL;
    request.each = false;
    enum redlock_result result = redlock_acquire(client, &request, &all, NULL);
    printf("all or none of them: %s\n", redlock_text(result));
    for (int i = 0; i < TAKEN; i++) {
        (void)redlock_unlock(theirs[i], NULL);
    }
    request.wait_ms = 5000;
    result = redlock_acquire(client, &request, &all, NULL);
    printf("when the other one has given its back: %s\n", redlock_text(result));
    (void)redlock_unlock(all, NULL);
    redlock_close(other);
    redlock_close(client);
    return 0;
}
