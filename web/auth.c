/* SPDX-License-Identifier: Apache-2.0 */
#include "web/auth.h"

#include "base/clock.h"
#include "base/rand.h"
#include "web/tokens.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>

#define SESSIONS_MAX 256
#define SESSION_US (12 * 3600 * US_PER_S)
#define SECRET_BYTES 32
#define SECRET_SIZE (2 * SECRET_BYTES + 1)
#define FAILURES_MAX 10 /* per address and minute */
#define ADDRESSES_MAX 64
#define COOKIE_NAME "claimd_session"

/* A browser that has logged in. */
struct session {
    char secret[SECRET_SIZE]; /* "" = unused */
    enum web_role role;
    char who[WEB_WHO_MAX];
    int64_t end_us;
};

/* Wrong tokens of an address. */
struct failures {
    char address[WEB_ADDRESS_MAX];
    int64_t since_us;
    int count;
};

struct auth {
    const struct config *config;
    pthread_mutex_t mutex; /* guards all below */
    struct tokens tokens;
    struct session sessions[SESSIONS_MAX];
    struct failures failures[ADDRESSES_MAX];
    uint64_t generation;
};

/* ---- life ---- */

enum status auth_open(const struct config *config, struct auth **ret, struct err *err)
{
    struct auth *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    a->config = config;
    (void)pthread_mutex_init(&a->mutex, NULL);
    enum status st = config->web.tokens_file[0] != '\0'
                         ? tokens_load(config->web.tokens_file, &a->tokens, err)
                         : STATUS_OK;
    if (st != STATUS_OK) {
        auth_close(a);
        return st;
    }
    *ret = a;
    return STATUS_OK;
}

void auth_close(struct auth *a)
{
    if (a != NULL) {
        (void)pthread_mutex_destroy(&a->mutex);
        explicit_bzero(a, sizeof *a);
        free(a);
    }
}

enum status auth_reload(struct auth *a, struct err *err)
{
    autofree struct tokens *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st = a->config->web.tokens_file[0] != '\0'
                         ? tokens_load(a->config->web.tokens_file, fresh, err)
                         : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    (void)pthread_mutex_lock(&a->mutex);
    a->tokens = *fresh;
    memset(a->sessions, 0, sizeof a->sessions);
    a->generation++;
    (void)pthread_mutex_unlock(&a->mutex);
    explicit_bzero(fresh, sizeof *fresh);
    return STATUS_OK;
}

uint64_t auth_generation(struct auth *a)
{
    (void)pthread_mutex_lock(&a->mutex);
    uint64_t generation = a->generation;
    (void)pthread_mutex_unlock(&a->mutex);
    return generation;
}

bool auth_has_tokens(struct auth *a)
{
    (void)pthread_mutex_lock(&a->mutex);
    bool has = a->tokens.count > 0;
    (void)pthread_mutex_unlock(&a->mutex);
    return has;
}

/* ---- hosts and origins ---- */

static bool is_listed(const struct config *c, const char *host, size_t len)
{
    for (size_t i = 0; i < c->web.host_count; i++) {
        const char *known = c->web.hosts[i];
        if (strlen(known) == len && strncasecmp(known, host, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns the length of the host in "host:port" or "[v6]:port"; 0 = it is not of that form. */
static size_t host_len(const char *text)
{
    size_t len = text[0] == '[' ? strcspn(text, "]") + 1 : strcspn(text, ":");
    const char *port = text + len;
    bool is_fine = len <= strlen(text) &&
                   (*port == '\0' || (*port == ':' && port[1] != '\0' &&
                                      port[1 + strspn(port + 1, "0123456789")] == '\0'));
    return is_fine ? len : 0;
}

static bool is_address(const char *host, size_t len)
{
    char text[INET6_ADDRSTRLEN + 2];
    unsigned char bytes[sizeof(struct in6_addr)];
    bool is_v6 = host[0] == '[';
    if (len >= sizeof text || (is_v6 && len < 3)) {
        return false;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)(len - (is_v6 ? 2 : 0)), host + is_v6);
    return inet_pton(is_v6 ? AF_INET6 : AF_INET, text, bytes) == 1;
}

bool auth_host_is_fine(const struct auth *a, const struct web_heads *heads)
{
    const char *host = heads->host;
    size_t len = host == NULL ? 0 : host_len(host);
    if (len == 0) {
        return false;
    }
    return is_address(host, len) || (len == 9 && strncasecmp(host, "localhost", len) == 0) ||
           is_listed(a->config, host, len) || is_listed(a->config, host, strlen(host));
}

bool auth_origin_is_fine(const struct auth *a, const struct web_request *q)
{
    const char *origin = q->heads.origin;
    if (origin == NULL) {
        return q->caller.by != WEB_BY_COOKIE && q->caller.by != WEB_BY_PROXY;
    }
    bool is_tls = a->config->web.tls_key_file[0] != '\0';
    const char *host = strncmp(origin, "https://", 8) == 0             ? origin + 8
                       : !is_tls && strncmp(origin, "http://", 7) == 0 ? origin + 7
                                                                       : NULL;
    return host != NULL &&
           (strcasecmp(host, q->heads.host) == 0 ||
            (strchr(host, '/') == NULL && is_listed(a->config, host, strlen(host))));
}

/* ---- who asks ---- */

static bool is_proxy(const struct config *c, const char *peer)
{
    for (size_t i = 0; i < c->web.proxy_count; i++) {
        if (strcmp(c->web.proxies[i], peer) == 0) {
            return true;
        }
    }
    return false;
}

/* Keeps what is printable; a name from outside goes into the audit. */
static void copy_name(const char *text, size_t len, char *ret, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < size; i++) {
        ret[n] = text[i];
        n += text[i] > ' ' && text[i] <= '~';
    }
    ret[n] = '\0';
}

/* The last address of the list is the one that the trusted proxy saw. */
static void find_address(const struct web_request *q, bool is_from_proxy, struct web_caller *ret)
{
    const char *list = q->heads.forwarded_for;
    (void)snprintf(ret->address, sizeof ret->address, "%s", q->peer);
    if (is_from_proxy && list != NULL) {
        const char *comma = strrchr(list, ',');
        const char *last = comma == NULL ? list : comma + 1;
        copy_name(last, strlen(last), ret->address, sizeof ret->address);
    }
}

static void find_user(const struct config *c, const char *user, struct web_caller *ret)
{
    copy_name(user, strlen(user), ret->who, sizeof ret->who);
    if (ret->who[0] == '\0' || strcmp(ret->who, user) != 0) {
        return; /* a name that would be another one in the audit is nobody's */
    }
    ret->by = WEB_BY_PROXY;
    ret->role = WEB_READER;
    for (size_t i = 0; i < c->web.operator_count; i++) {
        if (strcmp(c->web.operators[i], user) == 0) {
            ret->role = WEB_OPERATOR;
        }
    }
}

/* Returns the value of our cookie, of the right length; NULL = there is none. */
static const char *cookie_secret(const char *cookies, char room[SECRET_SIZE])
{
    size_t name = strlen(COOKIE_NAME "=");
    const char *at = cookies;
    while (at != NULL) {
        at += strspn(at, " ");
        size_t len = strcspn(at, ";");
        if (strncmp(at, COOKIE_NAME "=", name) == 0 && len == name + SECRET_SIZE - 1) {
            memcpy(room, at + name, SECRET_SIZE - 1);
            room[SECRET_SIZE - 1] = '\0';
            return room;
        }
        at = at[len] == ';' ? at + len + 1 : NULL;
    }
    return NULL;
}

/* The caller holds the mutex. */
static struct session *find_session(struct auth *a, const char *cookies)
{
    char room[SECRET_SIZE];
    const char *secret = cookies == NULL ? NULL : cookie_secret(cookies, room);
    struct session *found = NULL;
    for (size_t i = 0; i < SESSIONS_MAX && secret != NULL; i++) {
        struct session *s = &a->sessions[i];
        bool is_it = is_same_secret(s->secret, secret, SECRET_SIZE);
        found = is_it && s->end_us > clock_boot_us() ? s : found;
    }
    return found;
}

static void find_by_token(struct auth *a, const char *text, struct web_caller *ret)
{
    const struct token *token = tokens_find(&a->tokens, text);
    if (token != NULL) {
        ret->by = WEB_BY_TOKEN;
        ret->role = token->role;
        memcpy(ret->who, token->name, sizeof ret->who);
    }
}

void auth_find(struct auth *a, const struct web_request *q, struct web_caller *ret)
{
    const struct config *c = a->config;
    const char *authorization = q->heads.authorization;
    bool is_from_proxy = is_proxy(c, q->peer);
    *ret = (struct web_caller){.role = WEB_NOBODY};
    find_address(q, is_from_proxy, ret);
    (void)pthread_mutex_lock(&a->mutex);
    const struct session *session = find_session(a, q->heads.cookie);
    if (authorization != NULL) {
        if (strncasecmp(authorization, "Bearer ", 7) == 0) {
            find_by_token(a, authorization + 7, ret);
        }
    } else if (is_from_proxy && q->heads.user != NULL) {
        find_user(c, q->heads.user, ret);
    } else if (session != NULL) {
        ret->by = WEB_BY_COOKIE;
        ret->role = session->role;
        memcpy(ret->who, session->who, sizeof ret->who);
    } else if (a->tokens.count == 0 && c->web.proxy_count == 0) {
        ret->by = WEB_BY_OPEN;
        ret->role = WEB_READER;
    }
    (void)pthread_mutex_unlock(&a->mutex);
}

/* ---- log in and out ---- */

static void put_cookie(const struct config *c, const char *secret, int64_t age_s,
                       char ret[WEB_COOKIE_MAX])
{
    (void)snprintf(ret, WEB_COOKIE_MAX,
                   COOKIE_NAME "=%s; Path=%s/; Max-Age=%lld; HttpOnly; SameSite=Strict%s", secret,
                   c->web.path_prefix, (long long)age_s,
                   c->web.tls_key_file[0] != '\0' ? "; Secure" : "");
}

/* Returns the count of this address, or that of the address that has been silent for longest. The
 * caller holds the mutex. */
static struct failures *failures_of(struct auth *a, const char *address)
{
    struct failures *found = &a->failures[0];
    for (size_t i = 0; i < ADDRESSES_MAX; i++) {
        struct failures *f = &a->failures[i];
        if (strcmp(f->address, address) == 0) {
            found = f;
            break;
        }
        found = f->since_us < found->since_us ? f : found;
    }
    bool is_other = strcmp(found->address, address) != 0;
    if (is_other || clock_boot_us() - found->since_us > 60 * US_PER_S) {
        *found = (struct failures){.since_us = clock_boot_us()};
        (void)snprintf(found->address, sizeof found->address, "%s", address);
    }
    return found;
}

/* Returns an unused place, or that of the session that ends first. The caller holds the mutex. */
static struct session *place_for(struct auth *a)
{
    struct session *found = &a->sessions[0];
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        found = a->sessions[i].end_us < found->end_us ? &a->sessions[i] : found;
    }
    return found;
}

/* A new secret at each login: one that another page put into the browser has no value. */
static enum status begin_session(struct auth *a, const struct token *token, struct session *ret,
                                 struct err *err)
{
    unsigned char bytes[SECRET_BYTES];
    enum status st = rand_bytes(bytes, sizeof bytes, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = (struct session){.role = token->role, .end_us = clock_boot_us() + SESSION_US};
    memcpy(ret->who, token->name, sizeof ret->who);
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        (void)snprintf(ret->secret + 2 * i, 3, "%02x", bytes[i]);
    }
    *place_for(a) = *ret;
    return STATUS_OK;
}

static enum status login_locked(struct auth *a, const char *address, const char *token_text,
                                struct session *ret, struct err *err)
{
    struct failures *failures = failures_of(a, address);
    if (failures->count >= FAILURES_MAX) {
        return err_fail(err, STATUS_LIMIT, "too many wrong tokens: try again in a minute");
    }
    const struct token *token = tokens_find(&a->tokens, token_text);
    if (token == NULL) {
        failures->count++;
        return err_fail(err, STATUS_NOT_FOUND, "wrong token");
    }
    failures->count = 0;
    return begin_session(a, token, ret, err);
}

enum status auth_login(struct auth *a, const struct web_request *q, const char *token,
                       struct web_caller *ret, char ret_cookie[WEB_COOKIE_MAX], struct err *err)
{
    struct session session = {.secret = ""};
    (void)pthread_mutex_lock(&a->mutex);
    struct session *old = find_session(a, q->heads.cookie);
    enum status st = login_locked(a, q->caller.address, token, &session, err);
    if (st == STATUS_OK && old != NULL && strcmp(old->secret, session.secret) != 0) {
        *old = (struct session){.secret = ""};
    }
    (void)pthread_mutex_unlock(&a->mutex);
    if (st != STATUS_OK) {
        return st;
    }
    ret->by = WEB_BY_COOKIE;
    ret->role = session.role;
    memcpy(ret->who, session.who, sizeof ret->who);
    put_cookie(a->config, session.secret, SESSION_US / US_PER_S, ret_cookie);
    explicit_bzero(&session, sizeof session);
    return STATUS_OK;
}

void auth_logout(struct auth *a, const struct web_request *q, char ret_cookie[WEB_COOKIE_MAX])
{
    (void)pthread_mutex_lock(&a->mutex);
    struct session *s = find_session(a, q->heads.cookie);
    if (s != NULL) {
        *s = (struct session){.secret = ""};
    }
    (void)pthread_mutex_unlock(&a->mutex);
    put_cookie(a->config, "", 0, ret_cookie);
}
