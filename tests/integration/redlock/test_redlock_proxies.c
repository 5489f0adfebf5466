/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_proxies.h"

static struct fault_proxy *proxies[REDLOCK_NODES_MAX];

struct fault_proxy *proxy(size_t node)
{
    return proxies[node];
}

void proxies_start(size_t count)
{
    struct err err = {0};
    world_start(count, NULL);
    world.options.node_timeout_us = PROXIES_TIMEOUT_US;
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(fault_proxy_start(world.servers[i].path, &proxies[i], &err) == STATUS_OK,
                      "%s", err.msg);
        world.nodes[i].url = fault_proxy_url(proxies[i]);
    }
}

void proxies_stop(void)
{
    for (size_t i = 0; i < world.count; i++) {
        fault_proxy_stop(proxies[i]);
    }
}

void proxies_fault(size_t first, size_t count, const struct fault *fault)
{
    for (size_t i = first; i < first + count; i++) {
        fault_proxy_set(proxies[i], fault);
    }
}

void proxies_delay(size_t first, size_t count, int64_t to_server_us, int64_t to_client_us)
{
    for (size_t i = first; i < first + count; i++) {
        fault_proxy_delay(proxies[i], to_server_us, to_client_us);
    }
}

void proxies_all_vote(void)
{
    run_until(redlock_async_voting(world.lock) == world.count);
}

struct redlock_batch *proxies_acquire(int first, size_t count)
{
    for (;;) {
        proxies_all_vote();
        int64_t start_us = clock_boot_us();
        struct redlock_batch *batch = world_acquire(world.lock, first, count);
        if (world_won() == count) {
            return batch;
        }
        ck_assert_int_ge(clock_boot_us() - start_us, PROXIES_TIMEOUT_US);
        size_t left = world_won(); /* the batch ends with the last of them */
        for (size_t i = 0; left > 0; i++) {
            if (redlock_batch_result(batch, i) == REDLOCK_OK) {
                left--;
                redlock_batch_release(batch, i);
            }
        }
        world_flush(world.lock);
    }
}

struct outcome {
    bool is_there;
    enum redlock_result result;
};

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct outcome *o = ctx;
    o->is_there = true;
    o->result = redlock_batch_result(batch, 0);
    if (o->result == REDLOCK_OK) {
        redlock_batch_release(batch, 0);
    }
}

enum redlock_result proxies_try(int key)
{
    char name[32];
    struct outcome o = {0};
    int len = snprintf(name, sizeof name, "claimd:job:%d", key);
    const struct redlock_async_key one = {.bytes = name, .len = (size_t)len};
    const struct redlock_async_request request = {
        .keys = &one, .count = 1, .done = on_acquired, .ctx = &o};
    ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    run_until(o.is_there);
    return o.result;
}
