/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/info.h"

#include "base/clock.h"
#include "base/parse.h"

#include <stdio.h>

/* Finds the line "name:" and returns the rest of it. */
static bool info_field(const char *text, size_t len, const char *name, const char **ret_value,
                       size_t *ret_len)
{
    size_t name_len = strlen(name);
    const char *line = text;
    const char *end = text + len;
    while (line < end) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        const char *next = eol != NULL ? eol + 1 : end;
        size_t line_len = (size_t)((eol != NULL ? eol : end) - line);
        if (line_len > 0 && line[line_len - 1] == '\r') {
            line_len--;
        }
        if (line_len > name_len && line[name_len] == ':' && memcmp(line, name, name_len) == 0) {
            *ret_value = line + name_len + 1;
            *ret_len = line_len - name_len - 1;
            return true;
        }
        line = next;
    }
    return false;
}

struct info_text {
    const char *text;
    size_t len;
};

static enum status read_text(const struct info_text *info, const char *name, char *out, size_t size,
                             struct err *err)
{
    const char *value = NULL;
    size_t len = 0;
    if (!info_field(info->text, info->len, name, &value, &len) || len == 0 || len >= size) {
        return err_fail(err, STATUS_INVALID, "INFO: no usable %s", name);
    }
    memcpy(out, value, len);
    out[len] = '\0';
    return STATUS_OK;
}

static enum status read_number(const struct info_text *info, const char *name, int64_t *ret,
                               struct err *err)
{
    const char *value = NULL;
    size_t len = 0;
    if (!info_field(info->text, info->len, name, &value, &len) ||
        parse_i64(value, len, INT64_MIN / US_PER_S, INT64_MAX / US_PER_S, ret, NULL) != STATUS_OK) {
        return err_fail(err, STATUS_INVALID, "INFO: no usable %s", name);
    }
    return STATUS_OK;
}

/* Converts "7.0.15" to 70015. Each part is limited to 999, so that the number can't overflow,
 * whatever version the server reports. */
static int version_number(const char *version)
{
    int parts[3] = {0};
    const char *p = version;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        while (*p >= '0' && *p <= '9') {
            parts[i] = parts[i] < 100 ? parts[i] * 10 + (*p - '0') : 999;
            p++;
        }
        if (*p != '.') {
            break;
        }
        p++;
    }
    return parts[0] * 10000 + parts[1] * 100 + parts[2];
}

/* Valkey reports its own version beside that of the Redis with which it is compatible. */
static enum status read_version(const struct info_text *source, struct redis_server_info *info,
                                struct err *err)
{
    bool is_valkey =
        read_text(source, "valkey_version", info->version, sizeof info->version, NULL) == STATUS_OK;
    (void)snprintf(info->server, sizeof info->server, is_valkey ? "valkey" : "redis");
    enum status st = STATUS_OK;
    if (!is_valkey) {
        st = read_text(source, "redis_version", info->version, sizeof info->version, err);
    }
    info->version_number = version_number(info->version);
    info->has_set_ifeq = info->version_number >= (is_valkey ? 80100 : 80400);
    return st;
}

enum status redis_info_parse(const char *text, size_t len, struct redis_server_info *ret,
                             struct err *err)
{
    const struct info_text source = {.text = text, .len = len};
    struct redis_server_info info = {0};
    char role[16];
    int64_t uptime_s = 0;
    int64_t cluster = 0;
    int64_t replicas = 0;
    int64_t maxmemory = 0;
    enum status st = read_text(&source, "run_id", info.run_id, sizeof info.run_id, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_version(&source, &info, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_number(&source, "uptime_in_seconds", &uptime_s, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_text(&source, "role", role, sizeof role, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_number(&source, "connected_slaves", &replicas, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_number(&source, "cluster_enabled", &cluster, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_number(&source, "maxmemory", &maxmemory, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_text(&source, "maxmemory_policy", info.evict_policy, sizeof info.evict_policy, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (read_number(&source, "used_memory", &info.memory_bytes, NULL) != STATUS_OK) {
        info.memory_bytes = 0; /* nothing depends on it */
    }
    info.uptime_us = uptime_s > 0 ? uptime_s * US_PER_S : 0; /* negative if its clock went back */
    info.is_master = strcmp(role, "master") == 0;
    info.is_cluster = cluster != 0;
    info.replica_count = (int)(replicas > 1000000 ? 1000000 : replicas);
    info.may_evict = maxmemory > 0 && strcmp(info.evict_policy, "noeviction") != 0;
    *ret = info;
    return STATUS_OK;
}

static bool error_is(const struct redis_value *v, const char *word)
{
    size_t len = strlen(word);
    return v->len >= len && memcmp(v->text, word, len) == 0 &&
           (v->len == len || v->text[len] == ' ');
}

/* Matches the wording of Redis 7.0, and that of Redis 7.2 and Valkey. */
static bool is_about_a_key(const struct redis_value *v)
{
    return error_is(v, "NOPERM") && (strstr(v->text, "one of the keys used") != NULL ||
                                     strstr(v->text, "to access a key") != NULL);
}

enum redis_error_class redis_error_class(const struct redis_value *v)
{
    static const char *const of_the_node[] = {
        "LOADING",  "BUSY",        "MISCONF",    "OOM",       "READONLY",   "MASTERDOWN",
        "TRYAGAIN", "CLUSTERDOWN", "NOREPLICAS", "UNBLOCKED", "UNKILLABLE",
    };
    if (v->type != REDIS_ERROR) {
        return REDIS_ERROR_NONE;
    }
    if (error_is(v, "NOSCRIPT")) {
        return REDIS_ERROR_NOSCRIPT;
    }
    for (size_t i = 0; i < ARRAY_COUNT(of_the_node); i++) {
        if (error_is(v, of_the_node[i])) {
            return REDIS_ERROR_NODE;
        }
    }
    if (v->len >= 7 && strstr(v->text, "max number of clients") != NULL) {
        return REDIS_ERROR_NODE;
    }
    return is_about_a_key(v) ? REDIS_ERROR_KEY : REDIS_ERROR_CONFIG;
}
