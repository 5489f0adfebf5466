/* SPDX-License-Identifier: Apache-2.0
 *
 * A holder works for longer than its ttl. Without a watchdog the lock ends under its hands. With
 * one (which is the default) the lock is extended for as long as the holder lives. */
#include "common.h"

#define TTL_MS 2000
#define WORK_MS 3000

/* A works; B, another host, waits for the lock meanwhile, and no longer than that. */
static void run_both(struct redlock_client *a, struct redlock_client *b, bool manual)
{
    struct redlock_request request = {
        .key = "example:outlives", .ttl_ms = TTL_MS, .manual = manual};
    struct redlock_lock *lock = acquire(a, &request);
    struct redlock_lock *other = NULL;
    int64_t start_us = now_us();
    printf("%s watchdog: A works for %d ms under a lease of %d ms\n", manual ? "without" : "with",
           WORK_MS, TTL_MS);

    request.wait_ms = WORK_MS;
    enum redlock_result result = redlock_acquire(b, &request, &other, NULL);
    printf("  B waits for the lock: %s after %lld ms\n", redlock_text(result),
           (long long)(now_us() - start_us) / 1000);
    printf("  A %s the lock%s\n", redlock_left_ms(lock) > 0 ? "still has" : "has lost",
           result == REDLOCK_OK ? ", and works all the same: two at once" : "");
    struct redlock_report report = {0};
    (void)redlock_unlock(other, &report); /* with a report it waits for the nodes' answers */
    (void)redlock_unlock(lock, &report);
    printf("  A gives it back: deleted on %u nodes\n", report.deleted);
}

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    struct redlock_client *a = open_client(urls);
    struct redlock_client *b = open_client(urls);
    run_both(a, b, true);
    run_both(a, b, false);
    redlock_close(b);
    redlock_close(a);
    return 0;
}
