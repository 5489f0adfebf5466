/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/client/settings.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define TTL_MIN_MS 1000
#define TTL_PER_TIMEOUT 10       /* lock.A16 */
#define TTL_SHARE_OF_TIMEOUT 100 /* lock.A5 */
#define TIMEOUT_MIN_MS 10
#define TIMEOUT_MAX_MS 100
#define OPEN_MAX_MS (INT64_C(3600) * 1000)
#define DRIFT_PPM_MAX 500000
#define TTL_DEFAULT_MS 30000
#define OPEN_DEFAULT_MS 2000
#define DRIFT_PPM_DEFAULT 10000
#define SPACE " \t\n"

static enum status check_why(const char *name, int64_t value, int64_t min, int64_t max,
                             const char *why, struct err *err)
{
    if (value >= min && value <= max) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID,
                    "redlock: %s is %" PRId64 ", allowed are %" PRId64 " to %" PRId64 "%s", name,
                    value, min, max, why);
}

static enum status check(const char *name, int64_t value, int64_t min, int64_t max, struct err *err)
{
    return check_why(name, value, min, max, "", err);
}

static int64_t or_default(int64_t value, int64_t by_default)
{
    return value != 0 ? value : by_default;
}

static int64_t default_timeout_ms(int64_t ttl_ms)
{
    int64_t ms = ttl_ms / TTL_SHARE_OF_TIMEOUT;
    return ms < TIMEOUT_MIN_MS ? TIMEOUT_MIN_MS : ms > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS : ms;
}

static enum status read_times(const struct redlock_options *o, struct settings *s, struct err *err)
{
    int64_t ttl_ms = or_default(o->ttl_ms, TTL_DEFAULT_MS);
    int64_t ttl_max_ms = or_default(o->ttl_max_ms, ttl_ms);
    int64_t timeout_ms = or_default(o->node_timeout_ms, default_timeout_ms(ttl_ms));
    int64_t open_ms = or_default(o->open_ms, OPEN_DEFAULT_MS);
    enum status st = check("ttl_ms", ttl_ms, TTL_MIN_MS, REDLOCK_TTL_MAX_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_why("node_timeout_ms", timeout_ms, 1, ttl_ms / TTL_PER_TIMEOUT,
                   ": a tenth of ttl_ms at most", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check("ttl_max_ms", ttl_max_ms, ttl_ms, REDLOCK_TTL_MAX_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check("open_ms", open_ms, 1, OPEN_MAX_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    s->ttl_us = ttl_ms * US_PER_MS;
    s->ttl_max_us = ttl_max_ms * US_PER_MS;
    s->node_timeout_us = timeout_ms * US_PER_MS;
    s->open_us = open_ms * US_PER_MS;
    s->drift_ppm = o->drift_ppm != 0 ? o->drift_ppm : DRIFT_PPM_DEFAULT;
    return check("drift_ppm", s->drift_ppm, 1, DRIFT_PPM_MAX, err);
}

/* Removes surrounding white space, in place. */
static char *trim(char *text)
{
    text += strspn(text, SPACE);
    size_t len = strlen(text);
    while (len > 0 && strchr(SPACE, text[len - 1]) != NULL) {
        len--;
    }
    text[len] = '\0';
    return text;
}

enum status settings_split_nodes(char *list, struct redlock_node ret_nodes[REDLOCK_NODES_MAX],
                                 size_t *ret_count, struct err *err)
{
    char *rest = trim(list);
    size_t count = 0;
    if (*rest == '\0') {
        return err_fail(err, STATUS_INVALID, "redlock: no nodes: set nodes or $REDLOCK_NODES");
    }
    for (; rest != NULL; count++) {
        const char *url = trim(strsep(&rest, ","));
        if (*url == '\0') {
            return err_fail(err, STATUS_INVALID, "redlock: node %zu of the list is empty",
                            count + 1);
        }
        if (count < REDLOCK_NODES_MAX) {
            ret_nodes[count] = (struct redlock_node){.url = url};
        }
    }
    if (count > REDLOCK_NODES_MAX) {
        return err_fail(err, STATUS_INVALID, "redlock: %zu nodes, allowed are 1 to %d", count,
                        REDLOCK_NODES_MAX);
    }
    *ret_count = count;
    return STATUS_OK;
}

static const char *given_or_env(const char *given, bool is_from_env, const char *name)
{
    return given == NULL && is_from_env ? secure_getenv(name) : given;
}

/* Writes "user@host program[pid]", with unprintable characters replaced, cut to fit. */
static void default_label(char ret_label[REDLOCK_LABEL_LEN_MAX + 1])
{
    char host[REDLOCK_LABEL_LEN_MAX + 1] = "?";
    char user[REDLOCK_LABEL_LEN_MAX + 1] = "?";
    (void)gethostname(host, sizeof host - 1);
    host[sizeof host - 1] = '\0';
    if (getlogin_r(user, sizeof user) != 0) {
        (void)snprintf(user, sizeof user, "%u", (unsigned)getuid());
    }
    (void)snprintf(ret_label, REDLOCK_LABEL_LEN_MAX + 1, "%.16s@%.20s %.15s[%d]", user, host,
                   program_invocation_short_name, (int)getpid());
    for (char *p = ret_label; *p != '\0'; p++) {
        *p = *p >= ' ' && *p <= '~' ? *p : '?';
    }
}

static enum status read_nodes(const struct redlock_options *o, struct settings *s, struct err *err)
{
    bool is_from_env = o->nodes == NULL;
    const char *list = is_from_env ? secure_getenv("REDLOCK_NODES") : o->nodes;
    s->list = strdup(list != NULL ? list : "");
    if (s->list == NULL) {
        return err_fail(err, STATUS_NOMEM, "redlock: no memory for the nodes");
    }
    enum status st = settings_split_nodes(s->list, s->nodes, &s->node_count, err);
    for (size_t i = 0; i < s->node_count; i++) {
        s->nodes[i].user = given_or_env(o->user, is_from_env, "REDLOCK_USER");
        s->nodes[i].password = given_or_env(o->password, is_from_env, "REDLOCK_PASSWORD");
    }
    s->refused_max = o->majority_opens && s->node_count > 0 ? (s->node_count - 1) / 2 : 0;
    return st;
}

enum status settings_read(const struct redlock_options *options, struct settings *ret,
                          struct err *err)
{
    struct settings s = {.prefix = options->prefix != NULL ? options->prefix : "redlock:",
                         .on_event = options->on_event,
                         .ctx = options->ctx};
    if (options->size != 0 && options->size < sizeof *options) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: the size of the options must be 0 or sizeof");
    }
    enum status st = read_times(options, &s, err);
    if (st == STATUS_OK) {
        st = read_nodes(options, &s, err);
    }
    if (st != STATUS_OK) {
        free(s.list);
        return st;
    }
    if (options->label == NULL) {
        default_label(s.own_label);
    }
    *ret = s;
    return STATUS_OK;
}

enum status settings_check_ttl(const struct settings *s, int64_t ttl_ms, struct err *err)
{
    int64_t min_ms = s->node_timeout_us * TTL_PER_TIMEOUT / US_PER_MS;
    return check_why("ttl_ms", ttl_ms, min_ms > TTL_MIN_MS ? min_ms : TTL_MIN_MS,
                     s->ttl_max_us / US_PER_MS,
                     ": from 10 node timeouts to the client's ttl_max_ms", err);
}
