/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks up host names without blocking, and rotates the order of several hosts. */
#include "store/pg/internal.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_MAX 8
#define ADDRESSES_MAX 4 /* addresses tried per name */
#define LIST_MAX 4096

/* Looks up one name after the other. Outlives a cancelled session, in which case `pg` is NULL,
 * since libuv can't stop a lookup that has begun. */
struct pg_resolve {
    uv_getaddrinfo_t request;
    struct pg *pg;
    pg_resolved_cb *done;
    char *names[HOSTS_MAX]; /* they point into `host` */
    char *ports[HOSTS_MAX];
    size_t count;
    size_t next;
    char *host;
    char *port;
    struct buf lists[3]; /* host, hostaddr, port */
    size_t added;
    struct err failure; /* of the last name for which no address was found */
};

static void resolve_free(struct pg_resolve *r)
{
    for (size_t i = 0; i < ARRAY_COUNT(r->lists); i++) {
        buf_release(&r->lists[i]);
    }
    free(r->host);
    free(r->port);
    free(r);
}

/* ---- conninfo ---- */

/* Splits the list at its commas. Returns the number of items, including those beyond the bound,
 * which are not stored. */
static size_t split(char *list, char *items[HOSTS_MAX])
{
    size_t count = 0;
    for (char *item = list; item != NULL; count++) {
        if (count < HOSTS_MAX) {
            items[count] = item;
        }
        item = strchr(item, ',');
        if (item != NULL) {
            *item++ = '\0';
        }
    }
    return count;
}

static bool is_name(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    return host[0] != '\0' && host[0] != '/' && host[0] != '@' &&
           inet_pton(AF_INET, host, address) != 1 && inet_pton(AF_INET6, host, address) != 1;
}

static char *copy_value(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++) {
        if (strcmp(o->keyword, keyword) == 0 && o->val != NULL) {
            return strdup(o->val);
        }
    }
    return NULL;
}

/* Reads the hosts, beginning with the one at host_turn, so that a host that does not answer does
 * not keep us from the next. NOT_FOUND: no host, addresses are given, or there is one host that is
 * not a name. */
static enum status read_hosts(struct pg_resolve *r, const char *conninfo, struct err *err)
{
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &why);
    if (options == NULL) {
        enum status st = err_fail(err, STATUS_INVALID, "PostgreSQL connection string: %.*s",
                                  why != NULL ? (int)strcspn(why, "\n") : 13,
                                  why != NULL ? why : "out of memory");
        PQfreemem(why);
        return st;
    }
    autofree char *hostaddr = copy_value(options, "hostaddr");
    r->host = copy_value(options, "host");
    r->port = copy_value(options, "port");
    PQconninfoFree(options);
    if (r->host == NULL || hostaddr != NULL) {
        return STATUS_NOT_FOUND;
    }
    char *names[HOSTS_MAX];
    char *port_texts[HOSTS_MAX];
    r->count = split(r->host, names);
    size_t ports = r->port != NULL ? split(r->port, port_texts) : 0;
    if (r->count > HOSTS_MAX) {
        return err_fail(err, STATUS_INVALID, "PostgreSQL connection string: %zu hosts, at most %d",
                        r->count, HOSTS_MAX);
    }
    if (ports > 1 && ports != r->count) {
        return err_fail(err, STATUS_INVALID, "PostgreSQL connection string: %zu hosts, %zu ports",
                        r->count, ports);
    }
    bool has_name = false;
    for (size_t i = 0; i < r->count; i++) {
        size_t from = (i + r->pg->host_turn) % r->count;
        r->names[i] = names[from];
        r->ports[i] = ports == 0 ? NULL : port_texts[ports > 1 ? from : 0];
        has_name = has_name || is_name(r->names[i]);
    }
    return has_name || r->count > 1 ? STATUS_OK : STATUS_NOT_FOUND;
}

/* ---- the lookups ---- */

static enum status add(struct pg_resolve *r, const char *address, struct err *err)
{
    const char *port = r->ports[r->next];
    const char *const items[] = {r->names[r->next], address, port != NULL ? port : ""};
    const char *comma = r->added > 0 ? "," : "";
    for (size_t i = 0; i < ARRAY_COUNT(items); i++) {
        enum status st = buf_printf(&r->lists[i], err, "%s%s", comma, items[i]);
        if (st != STATUS_OK) {
            return st;
        }
    }
    r->added++;
    return STATUS_OK;
}

static void resolve_end(struct pg_resolve *r, enum status st, const struct err *err)
{
    struct pg *pg = r->pg;
    struct pg_hosts hosts = {0};
    if (st == STATUS_OK) {
        hosts = (struct pg_hosts){buf_at(&r->lists[0]), buf_at(&r->lists[1]), buf_at(&r->lists[2])};
    }
    pg->resolve = NULL;
    r->done(pg, st, &hosts, err);
    resolve_free(r);
}

static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *list);

/* Starts the next lookup. OK with `*ret_busy` false: every host is in the lists. */
static enum status resolve_next(struct pg_resolve *r, bool *ret_busy, struct err *err)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    *ret_busy = false;
    for (; r->next < r->count; r->next++) {
        const char *name = r->names[r->next];
        if (is_name(name)) {
            int failed =
                uv_getaddrinfo(r->pg->options.loop, &r->request, on_addresses, name, NULL, &hints);
            *ret_busy = failed == 0;
            return failed == 0 ? STATUS_OK
                               : err_fail(err, STATUS_INTERNAL, "cannot look up '%.100s': %s", name,
                                          uv_strerror(failed));
        }
        bool is_address = name[0] != '\0' && name[0] != '/' && name[0] != '@';
        enum status st = add(r, is_address ? name : "", err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (r->added == 0) {
        *err = r->failure;
        return r->failure.status;
    }
    return STATUS_OK;
}

static enum status add_all(struct pg_resolve *r, int status, const struct addrinfo *list,
                           struct err *err)
{
    int count = 0;
    if (status != 0) {
        r->failure = (struct err){0};
        err_set(&r->failure, STATUS_UNAVAILABLE, 0, "cannot look up '%.100s': %s",
                r->names[r->next], uv_strerror(status));
    }
    for (; list != NULL && count < ADDRESSES_MAX; list = list->ai_next) {
        char text[INET6_ADDRSTRLEN];
        enum status st = STATUS_OK;
        if (getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof text, NULL, 0,
                        NI_NUMERICHOST) == 0) {
            st = add(r, text, err);
            count++;
        }
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct pg_resolve *r = request->data;
    struct err err = {0};
    bool is_busy = false;
    enum status st = r->pg != NULL ? add_all(r, status, list, &err) : STATUS_OK;
    uv_freeaddrinfo(list);
    if (r->pg == NULL) {
        resolve_free(r);
        return;
    }
    r->next++;
    if (st == STATUS_OK) {
        st = resolve_next(r, &is_busy, &err);
    }
    if (!is_busy) {
        resolve_end(r, st, &err);
    }
}

enum status pg_resolve_start(struct pg *pg, pg_resolved_cb *done, struct err *err)
{
    struct pg_resolve *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory to look up PostgreSQL's host");
    }
    r->pg = pg;
    r->done = done;
    r->request.data = r;
    for (size_t i = 0; i < ARRAY_COUNT(r->lists); i++) {
        buf_init(&r->lists[i], LIST_MAX);
    }
    bool is_busy = false;
    enum status st = read_hosts(r, pg->options.conninfo, err);
    if (st == STATUS_OK) {
        st = resolve_next(r, &is_busy, err);
    }
    if (st != STATUS_OK) {
        resolve_free(r);
        return st;
    }
    pg->resolve = r;
    if (!is_busy) {
        resolve_end(r, STATUS_OK, err); /* several hosts, none of which is a name */
    }
    return STATUS_OK;
}

void pg_resolve_cancel(struct pg *pg)
{
    if (pg->resolve != NULL) {
        pg->resolve->pg = NULL;
        (void)uv_cancel((uv_req_t *)&pg->resolve->request);
        pg->resolve = NULL;
    }
}
