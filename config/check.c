/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that concern several values, and checks of single values that a range can't express. */
#include "base/clock.h"
#include "config/options.h"
#include "model/job.h"

#include <ctype.h>

static long long ms(int64_t us)
{
    return (long long)(us / US_PER_MS);
}

static enum status check_lock(const struct config *c, struct err *err)
{
    if (c->lock.ttl_us < 10 * c->lock.node_timeout_us) {
        return err_fail(err, STATUS_INVALID,
                        "lock.ttl_ms: %lld is not allowed; allowed: at least 10 × "
                        "lock.node_timeout_ms (%lld)",
                        ms(c->lock.ttl_us), 10 * ms(c->lock.node_timeout_us));
    }
    if (c->lock.kill_margin_us >= c->lock.guard_us) {
        return err_fail(err, STATUS_INVALID,
                        "lock.kill_margin_ms: %lld is not allowed; allowed: less than "
                        "lock.guard_ms (%lld)",
                        ms(c->lock.kill_margin_us), ms(c->lock.guard_us));
    }
    if (c->lock.guard_us + c->lock.kill_margin_us >= c->lock.ttl_us) {
        return err_fail(err, STATUS_INVALID,
                        "lock.guard_ms: %lld is not allowed; allowed: with lock.kill_margin_ms "
                        "less than lock.ttl_ms (%lld)",
                        ms(c->lock.guard_us), ms(c->lock.ttl_us));
    }
    return STATUS_OK;
}

static enum status check_worker(const struct config *c, struct err *err)
{
    if (c->worker.stale_us < 3 * c->worker.beat_us) {
        return err_fail(err, STATUS_INVALID,
                        "worker.stale_ms: %lld is not allowed; allowed: at least 3 × "
                        "worker.beat_ms (%lld)",
                        ms(c->worker.stale_us), 3 * ms(c->worker.beat_us));
    }
    if (c->worker.block_us >= c->worker.stale_us) {
        return err_fail(err, STATUS_INVALID,
                        "worker.pop_block_ms: %lld is not allowed; allowed: less than "
                        "worker.stale_ms (%lld)",
                        ms(c->worker.block_us), ms(c->worker.stale_us));
    }
    for (size_t i = 0; i < c->worker.queue_count; i++) {
        enum status st = job_queue_check(c->worker.queues[i], err);
        if (st != STATUS_OK) {
            err_prefix(err, "worker.queues");
            return st;
        }
    }
    return STATUS_OK;
}

static enum status check_prefix(const struct config *c, struct err *err)
{
    for (const char *p = c->redis.prefix; *p != '\0'; p++) {
        if (!isalnum((unsigned char)*p) && strchr("_.-", *p) == NULL) {
            return err_fail(err, STATUS_INVALID,
                            "redis.prefix: '%s' is not allowed; allowed: letters, digits, "
                            "'_', '.', '-'",
                            c->redis.prefix);
        }
    }
    return STATUS_OK;
}

/* True if the text contains the keyword "password" or "sslpassword", followed by '='. */
static bool has_password_key(const char *text)
{
    for (const char *at = strstr(text, "password"); at != NULL; at = strstr(at + 1, "password")) {
        size_t before = (size_t)(at - text);
        size_t ssl = before >= 3 && strncmp(at - 3, "ssl", 3) == 0 ? 3 : 0;
        const char *end = at + strlen("password");
        end += strspn(end, " \t\r\n");
        bool is_word = before == ssl || !(isalnum((unsigned char)at[-(ptrdiff_t)ssl - 1]) ||
                                          at[-(ptrdiff_t)ssl - 1] == '_');
        if (is_word && *end == '=') {
            return true;
        }
    }
    return false;
}

/* Many people may read a configuration file, so the password must be in a file of its own. */
static enum status check_conninfo(const struct config *c, struct err *err)
{
    const char *text = c->postgres.conninfo;
    const char *authority = strstr(text, "://");
    size_t len = authority == NULL ? 0 : strcspn(authority + 3, "/?");
    const char *at = authority == NULL ? NULL : memchr(authority + 3, '@', len);
    const char *colon = authority == NULL ? NULL : memchr(authority + 3, ':', len);
    if (has_password_key(text) || (at != NULL && colon != NULL && colon < at)) {
        return err_fail(err, STATUS_INVALID,
                        "postgres.conninfo: a password is not allowed here; name its file in "
                        "postgres.password_file");
    }
    return STATUS_OK;
}

static enum status check_listen(const struct config *c, struct err *err)
{
    struct config_listen parts;
    enum status st = config_listen("worker.http_listen", c->worker.http_listen, &parts, err);
    if (st != STATUS_OK) {
        return st;
    }
    return config_listen("scheduler.http_listen", c->scheduler.http_listen, &parts, err);
}

/* True if only this host can reach the address. */
static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0;
}

static enum status check_web_listen(const struct config *c, struct err *err)
{
    struct config_listen parts;
    enum status st = config_listen("web.listen", c->web.listen, &parts, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!is_loopback(parts.host) && c->web.tokens_file[0] == '\0' && c->web.proxy_count == 0) {
        return err_fail(err, STATUS_INVALID,
                        "web.listen: '%.80s' can be reached by other hosts: set web.tokens_file or "
                        "web.proxies, or listen on 127.0.0.1",
                        c->web.listen);
    }
    return STATUS_OK;
}

static enum status check_web(const struct config *c, struct err *err)
{
    static const char path[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.-";
    const char *prefix = c->web.path_prefix;
    const char *colour = c->web.cluster_colour;
    size_t len = strlen(prefix);
    if (len > 0 && (prefix[0] != '/' || prefix[len - 1] == '/' || strspn(prefix, path) != len)) {
        return err_fail(err, STATUS_INVALID,
                        "web.path_prefix: '%.80s' is not allowed; allowed: a path such as /claimd",
                        prefix);
    }
    if (colour[0] != '\0' && (colour[0] != '#' || strlen(colour) != 7 ||
                              strspn(colour + 1, "0123456789abcdefABCDEF") != 6)) {
        return err_fail(err, STATUS_INVALID,
                        "web.cluster_colour: '%s' is not allowed; allowed: # and 6 hex digits",
                        colour);
    }
    if ((c->web.tls_certificate_file[0] == '\0') != (c->web.tls_key_file[0] == '\0')) {
        return err_fail(err, STATUS_INVALID,
                        "web.tls_certificate_file: must be set together with web.tls_key_file");
    }
    return check_web_listen(c, err);
}

static enum status check_lead(const struct config *c, struct err *err)
{
    if (c->scheduler.lead_try_us >= c->scheduler.lead_ttl_us) {
        return err_fail(err, STATUS_INVALID,
                        "scheduler.lead_try_ms: %lld is not allowed; allowed: less than "
                        "scheduler.lead_ttl_ms (%lld)",
                        ms(c->scheduler.lead_try_us), ms(c->scheduler.lead_ttl_us));
    }
    return STATUS_OK;
}

/* In this order; the first failure is the one reported. */
static enum status (*const checks[])(const struct config *c, struct err *err) = {
    check_lock, check_worker, check_prefix, check_conninfo, check_listen, check_lead, check_web};

enum status config_check_relations(const struct config *c, struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(checks); i++) {
        enum status st = checks[i](c, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}
