/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a client, checked and with their defaults filled in. */
#include "base/clock.h"
#include "redlock/client.h"

#include <inttypes.h>

#define TTL_MIN_MS 1000
#define TTL_PER_TIMEOUT 10       /* lock.A16 */
#define TTL_SHARE_OF_TIMEOUT 100 /* lock.A5 */
#define TIMEOUT_MIN_MS 10
#define TIMEOUT_MAX_MS 100
#define RETRIES_MAX 1000
#define PAUSE_MAX_MS (INT64_C(3600) * 1000)
#define DRIFT_PPM_MAX 500000

static enum status check(const char *name, int64_t value, int64_t min, int64_t max, struct err *err)
{
    if (value >= min && value <= max) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID,
                    "redlock: %s is %" PRId64 ", allowed are %" PRId64 " to %" PRId64, name, value,
                    min, max);
}

static int64_t default_timeout_ms(int64_t ttl_ms)
{
    int64_t ms = ttl_ms / TTL_SHARE_OF_TIMEOUT;
    return ms < TIMEOUT_MIN_MS ? TIMEOUT_MIN_MS : ms > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS : ms;
}

static enum status check_lease(const struct redlock_options *o, struct settings *s, struct err *err)
{
    enum status st = check("ttl_ms", o->ttl_ms, TTL_MIN_MS, REDLOCK_TTL_MAX_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t timeout_ms =
        o->node_timeout_ms != 0 ? o->node_timeout_ms : default_timeout_ms(o->ttl_ms);
    int64_t ttl_max_ms = o->ttl_max_ms != 0 ? o->ttl_max_ms : o->ttl_ms;
    st = check("node_timeout_ms", timeout_ms, 1, o->ttl_ms / TTL_PER_TIMEOUT, err);
    if (st != STATUS_OK) {
        err_prefix(err, "a tenth of ttl_ms at most");
        return st;
    }
    st = check("ttl_max_ms", ttl_max_ms, o->ttl_ms, REDLOCK_TTL_MAX_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check("drift_ppm", o->drift_ppm, 0, DRIFT_PPM_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check("min_validity_ms", o->min_validity_ms, 0, o->ttl_ms, err);
    if (st != STATUS_OK) {
        return st;
    }
    s->ttl_us = o->ttl_ms * US_PER_MS;
    s->ttl_max_us = ttl_max_ms * US_PER_MS;
    s->node_timeout_us = timeout_ms * US_PER_MS;
    s->min_validity_us = o->min_validity_ms * US_PER_MS; /* 0: half of each request's own ttl */
    return STATUS_OK;
}

static enum status check_retries(const struct redlock_options *o, struct settings *s,
                                 struct err *err)
{
    enum status st = check("retries", o->retries, 0, RETRIES_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check("retry_base_ms", o->retry_base_ms, 0, PAUSE_MAX_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check("retry_cap_ms", o->retry_cap_ms, o->retry_base_ms, PAUSE_MAX_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check("open_timeout_ms", o->open_timeout_ms, 0, PAUSE_MAX_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    s->retries = o->retries;
    s->retry_base_us = o->retry_base_ms * US_PER_MS;
    s->retry_cap_us = o->retry_cap_ms * US_PER_MS;
    s->open_timeout_us = o->open_timeout_ms * US_PER_MS;
    return STATUS_OK;
}

enum status settings_read(const struct redlock_options *options, struct settings *ret,
                          struct err *err)
{
    struct settings s = {
        .node_count = options->node_count, .on_node = options->on_node, .ctx = options->ctx};
    if (options->majority_opens && options->node_count > 0) {
        s.refused_max = (options->node_count - 1) / 2;
    }
    if (options->nodes == NULL || options->node_count < 1 ||
        options->node_count > REDLOCK_NODES_MAX) {
        return err_fail(err, STATUS_INVALID, "redlock: %zu nodes, allowed are 1 to %d",
                        options->nodes == NULL ? 0 : options->node_count, REDLOCK_NODES_MAX);
    }
    enum status st = check_lease(options, &s, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_retries(options, &s, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = s;
    return STATUS_OK;
}

enum status settings_check_ttl(const struct settings *s, int64_t ttl_ms, struct err *err)
{
    int64_t min_ms = s->node_timeout_us * TTL_PER_TIMEOUT / US_PER_MS;
    enum status st = check("ttl_ms", ttl_ms, min_ms > TTL_MIN_MS ? min_ms : TTL_MIN_MS,
                           s->ttl_max_us / US_PER_MS, err);
    if (st != STATUS_OK) {
        err_prefix(err, "between 10 node timeouts and the client's ttl_max_ms");
    }
    return st;
}
