/* SPDX-License-Identifier: Apache-2.0
 *
 * A function that needs a lock calls another one that needs the same lock. A call with the same
 * owner gets the lock that the owner already has, without asking the nodes; as many unlocks as
 * locks give it back. Without an owner the inner call would wait for its own caller. */
#include "common.h"

static const char key[] = "example:account:7";

/* The nodes have it before the next try, which gives up at once where the lock is held. */
static void unlock_and_wait(struct redlock_lock *lock)
{
    struct redlock_report report = {0};
    (void)redlock_unlock(lock, &report);
}

static void ask_as_another(struct redlock_client *other, const char *when)
{
    struct redlock_lock *lock = NULL;
    enum redlock_result result = redlock_try(other, key, &lock);
    printf("another host, %s: %s\n", when, redlock_text(result));
    unlock_and_wait(lock);
}

static void check_balance(struct redlock_client *client, struct redlock_owner *owner)
{
    const struct redlock_request request = {.key = key, .owner = owner};
    struct redlock_lock *lock = acquire(client, &request);
    printf("check_balance() has the lock, too\n");
    (void)redlock_unlock(lock, NULL);
}

static void withdraw(struct redlock_client *client, struct redlock_owner *owner,
                     struct redlock_client *other)
{
    struct redlock_stats before = {0};
    struct redlock_stats after = {0};
    const struct redlock_request request = {.key = key, .owner = owner};
    struct redlock_lock *lock = acquire(client, &request);
    printf("withdraw() has the lock\n");
    redlock_get_stats(client, &before);
    check_balance(client, owner);
    redlock_get_stats(client, &after);
    printf("grants by the nodes for the inner lock: %d\n",
           (int)(after.results[REDLOCK_OK] - before.results[REDLOCK_OK]));
    ask_as_another(other, "after the inner unlock");
    unlock_and_wait(lock);
}

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    struct redlock_client *client = open_client(urls);
    struct redlock_client *other = open_client(urls);
    struct redlock_owner *owner = NULL;
    struct redlock_lock *lock = NULL;
    if (redlock_owner_new(client, &owner) != REDLOCK_OK) {
        fail("owner", "no memory");
    }
    withdraw(client, owner, other);
    ask_as_another(other, "after the outer unlock");

    lock = acquire(client, &(struct redlock_request){.key = key, .owner = owner});
    ask_as_another(client, "or the same one without the owner");
    (void)redlock_unlock(lock, NULL);
    redlock_owner_free(owner);
    redlock_close(other);
    redlock_close(client);
    return 0;
}
