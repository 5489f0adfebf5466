/* SPDX-License-Identifier: Apache-2.0
 *
 * Masters fall silent (here by CLIENT PAUSE, which they survive). A minority changes nothing, not
 * even the time that it takes. Without a majority there is no lock, which is said soon and by name;
 * and work goes on as soon as there is one again. */
#include "common.h"

#define PAUSE_MS 3000

static void ask(struct redlock_client *client, int64_t wait_ms)
{
    const struct redlock_request request = {.key = "example:silent", .wait_ms = wait_ms};
    struct redlock_report report = {0};
    struct redlock_lock *lock = NULL;
    int64_t start_us = now_us();
    enum redlock_result result = redlock_acquire(client, &request, &lock, &report);
    printf("  %s after %lld ms, the votes:", redlock_text(result),
           (long long)(now_us() - start_us) / 1000);
    for (size_t i = 0; i < report.node_count; i++) {
        printf(" %s%s", redlock_vote_text(report.votes[i]), i + 1 < report.node_count ? "," : "\n");
    }
    (void)redlock_unlock(lock, NULL);
}

static void pause_node(const char *url)
{
    redisContext *redis = connect_to(url);
    run(redis, "CLIENT PAUSE %d", PAUSE_MS);
    redisFree(redis);
}

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    int count = argc - 1;
    int minority = (count - 1) / 2;
    struct redlock_client *client = open_client(urls);
    printf("all %d masters answer:\n", count);
    ask(client, 0);

    for (int i = 0; i < minority; i++) {
        pause_node(urls[i]);
    }
    printf("%d of %d are silent:\n", minority, count);
    ask(client, 0);

    pause_node(urls[minority]);
    printf("%d of %d are silent:\n", minority + 1, count);
    ask(client, 0);

    printf("they will answer again within %d ms, and we wait:\n", PAUSE_MS);
    ask(client, 30000);
    redlock_close(client);
    return 0;
}
