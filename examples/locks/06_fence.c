/* SPDX-License-Identifier: Apache-2.0
 *
 * No watchdog helps a holder that is stopped as a whole (SIGSTOP, a frozen machine, swapping)
 * between its last look at the lock and its write. A fence does: a number that rises with every
 * grant, and a store that refuses numbers below the highest it has seen. In PostgreSQL that is one
 * statement, UPDATE … SET fence = $2 WHERE id = $1 AND fence <= $2, and the number best comes from
 * there, too. */
#include "common.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct store { /* stands for a database: one line of text, and the highest fence so far */
    uint64_t fence;
    char text[64];
};

static const struct redlock_request request = {
    .key = "example:fence", .ttl_ms = 2000, .wait_ms = 10000, .fence = true};

static void store_write(struct store *store, uint64_t fence, const char *who)
{
    bool is_stale = fence < store->fence;
    if (!is_stale) {
        store->fence = fence;
        (void)snprintf(store->text, sizeof store->text, "written by %s", who);
    }
    printf("%s writes with fence %" PRIu64 ": %s\n", who, fence,
           is_stale ? "refused, it is stale" : "accepted");
}

static int holder_a(char **urls, struct store *store)
{
    struct redlock_client *client = open_client(urls);
    struct redlock_lock *lock = acquire(client, &request);
    uint64_t fence = redlock_fence(lock);
    printf("A has the lock with fence %" PRIu64 ", looks: it %s; and is stopped before it writes\n",
           fence, redlock_left_ms(lock) > 0 ? "holds it" : "does not hold it");
    (void)raise(SIGSTOP);
    store_write(store, fence, "A"); /* too late to look again */
    printf("A looks after its lock again: it is %s\n", redlock_left_ms(lock) > 0 ? "held" : "lost");
    (void)redlock_unlock(lock, NULL);
    redlock_close(client);
    return 0;
}

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    struct store *store =
        mmap(NULL, sizeof *store, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = store == MAP_FAILED ? -1 : fork(); /* before any client: none survives a fork */
    if (pid == 0) {
        return holder_a(urls, store);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) {
        fail("A", "was not stopped");
    }
    struct redlock_client *client = open_client(urls);
    struct redlock_lock *lock = acquire(client, &request);
    printf("B has the lock, since A's lease is over\n");
    store_write(store, redlock_fence(lock), "B");
    (void)kill(pid, SIGCONT);
    (void)waitpid(pid, &status, 0);
    printf("the store says: %s\n", store->text);
    (void)redlock_unlock(lock, NULL);
    redlock_close(client);
    return 0;
}
