/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection to one Redis on a libuv loop, kept up permanently: connect, handshake, requests in
 * order, reconnect with full jitter (50 ms … 5 s, lock.C2). libuv carries the bytes (non-blocking,
 * CLOEXEC, TCP_NODELAY), hiredis' reader parses them; only this library includes it. Names are
 * resolved in a thread of their own (lock.C7); everything else runs in one thread. Never used after
 * fork.
 *
 * Requests are written in the order of redis_node_send(); all that is sent during one turn of the
 * loop leaves in one write, which never raises SIGPIPE (lock.F2). Every request has a deadline of
 * its own (lock.C4). A request that misses it closes the connection, so a late reply can never be
 * taken for another request's (lock.C3). Commands that such a connection has left in the server's
 * buffers are dropped: the first command of the next connection kills the old one (lock.R1). */
#ifndef CLAIMD_REDIS_REDIS_H
#define CLAIMD_REDIS_REDIS_H

#include "base/buf.h"

#include <uv.h>

#define REDIS_PORT_DEFAULT 6379
#define REDIS_IN_FLIGHT_BYTES_MAX ((size_t)16 << 20)

struct redis_endpoint {
    char host[256]; /* name or address; "" for a unix socket */
    int port;
    char path[108]; /* unix socket, or "" */
    char user[64];
    char password[256];
    int db;
    bool is_tls;
    bool is_filled_in; /* redis_endpoint_login() filled in the password */
};

/* Parses "host", "host:port", "[v6]:port", "unix:/path",
 * "redis://[user[:password]@]host[:port][/db]", or rediss:// with TLS. INVALID says what is wrong
 * (never the password). */
enum status redis_endpoint_parse(const char *text, struct redis_endpoint *ret,
                                 struct err *err) MUST_USE;

/* Checks a list of `count` texts in arrays of `size` bytes. INVALID names the list and the item. */
enum status redis_endpoint_check_list(const char *name, const char *texts, size_t size,
                                      size_t count, struct err *err) MUST_USE;

/* Writes the addresses of such a list, sorted, separated by commas, without users and passwords:
 * lists of the same nodes give the same text. INVALID, or LIMIT: longer than ret_size. */
enum status redis_endpoint_sorted_list(const char *texts, size_t size, size_t count, char *ret,
                                       size_t ret_size, struct err *err) MUST_USE;

/* Fills in the user and password if the text had none; NULL or "" = nothing to fill in. INVALID:
 * too long. A later call replaces a password that was filled in. */
enum status redis_endpoint_login(struct redis_endpoint *e, const char *user, const char *password,
                                 struct err *err) MUST_USE;

/* Writes "host:port" or "unix:/path": for logs and for the fingerprint of a node list. */
#define REDIS_ENDPOINT_TEXT_SIZE 272
void redis_endpoint_text(const struct redis_endpoint *e, char *ret_text, size_t size);

/* The results of the handshake. The fields from `client_id` on are optional: if the server, or this
 * user's rights, do not provide them, they are zero and their features are not used. */
struct redis_server_info {
    char run_id[41];
    char server[8];     /* "redis" or "valkey" */
    char version[24];   /* its own, not that of the Redis with which it is compatible */
    int version_number; /* major · 10000 + minor · 100 + patch */
    int64_t uptime_us;  /* whole seconds of the server's wall clock, rounded down */
    bool is_master;
    bool is_cluster;
    bool may_evict; /* maxmemory > 0 and a policy other than noeviction */
    int replica_count;
    int64_t memory_bytes; /* used memory; 0 = not reported */
    char evict_policy[24];
    int64_t client_id; /* of this connection */
    bool can_kill;     /* commands of our earlier connections can no longer run (lock.R1) */
    bool has_set_ifeq; /* SET key value IFEQ value (lock.C9) */
    bool has_delifeq;  /* DELIFEQ key value, permitted to this user */
    bool has_delex;    /* DELEX key IFEQ value, likewise */
};

enum redis_reply_type {
    REDIS_NIL,
    REDIS_STATUS,
    REDIS_STRING,
    REDIS_INTEGER,
    REDIS_ARRAY,
    REDIS_ERROR,
};

/* Borrowed until the callback that got it returns. Strings are length-counted and
 * NUL-terminated. */
struct redis_value {
    enum redis_reply_type type;
    int64_t integer;
    const char *text;
    size_t len; /* of text, or number of items */
    struct redis_value *const *items;
};

/* Error replies, classified by what to do about them (lock.C8). */
enum redis_error_class {
    REDIS_ERROR_NONE,
    /* LOADING, BUSY, MISCONF, OOM, READONLY, MASTERDOWN, …: a problem of this node, for now */
    REDIS_ERROR_NODE,
    REDIS_ERROR_NOSCRIPT, /* the script must be loaded again */
    REDIS_ERROR_KEY,      /* NOPERM: our user may not use one of these keys, but may use others */
    REDIS_ERROR_CONFIG, /* NOAUTH, NOPERM for a command, WRONGTYPE, unknown command: needs a fix */
};

enum redis_error_class redis_error_class(const struct redis_value *v);

/* A Lua script: loaded in each handshake by SCRIPT LOAD (lock.C9), called by its SHA-1, sent whole
 * once on NOSCRIPT. */
struct redis_script {
    const char *name;
    const char *body;
};

struct redis_node;

/* Called after the handshake, before anything else is sent. To refuse the server, return a status
 * and fill in err: the connection is closed, `on_down` gets the reason, and the node is tried again
 * at the slowest pace. With CONFLICT, for a temporary reason, it is tried again as after any other
 * failure. */
typedef enum status redis_up_cb(void *ctx, struct redis_node *node,
                                const struct redis_server_info *info, struct err *err);
/* Called once per change from up (or from the first try) to down, with the reason: INVALID if the
 * server is refused for what it is or how it is configured, so that an operator must act. */
typedef void redis_down_cb(void *ctx, struct redis_node *node, const struct err *why);

/* Returns true if it handled a value that no request asked for. A subscriber's connection gets
 * messages between its replies; false = the value is the next reply. */
typedef bool redis_push_cb(void *ctx, const struct redis_value *v);

struct redis_tls; /* tls.h */

struct redis_options {
    uv_loop_t *loop;
    struct redis_endpoint endpoint;
    const struct redis_tls *tls; /* borrowed; NULL = the system's CAs if the endpoint is_tls */
    int64_t connect_timeout_us;  /* for lookup, connect and handshake together */
    const struct redis_script *const *scripts;
    size_t script_count;
    redis_up_cb *on_up;     /* may be NULL */
    redis_down_cb *on_down; /* may be NULL */
    redis_push_cb *on_push; /* NULL = every value is a reply */
    void *ctx;
};

/* Starts connecting. NOMEM, INVALID (no CAs for TLS). The options are copied; scripts are borrowed
 * for the life of the node. */
enum status redis_node_open(const struct redis_options *options, struct redis_node **ret_node,
                            struct err *err) MUST_USE;

/* Ends every request with UNAVAILABLE, then frees; handles close in later turns of the loop.
 * Accepts NULL. */
void redis_node_close(struct redis_node *node);

/* Refuses a server that has changed since `on_up` accepted it. May be called from inside a
 * reply. */
void redis_node_refuse(struct redis_node *node, const struct err *why);

/* Looks the node's name up again: a connection to an address that the name no longer has is
 * replaced by one to an address that it has. */
void redis_node_doubt(struct redis_node *node);

bool redis_node_is_up(const struct redis_node *node);
/* Returns the result of the last handshake. */
const struct redis_server_info *redis_node_info(const struct redis_node *node);
const struct redis_endpoint *redis_node_endpoint(const struct redis_node *node);
/* Sets the password from the next connection on; a password in the address stays. The present
 * connection is kept. INVALID: too long. */
enum status redis_node_set_password(struct redis_node *node, const char *password,
                                    struct err *err) MUST_USE;

/* Called for each reply in order; `index` counts within the request. An error reply is a value like
 * any other. */
typedef void redis_reply_cb(void *ctx, size_t index, const struct redis_value *value);
/* Called exactly once, after the last reply: OK, TIMEOUT or UNAVAILABLE (connection lost: it is not
 * known whether the request was executed). Never called from inside redis_node_send(). */
typedef void redis_done_cb(void *ctx, enum status st);

struct redis_request {
    const char *bytes; /* RESP commands (redis_command()); copied before the call returns */
    size_t len;
    size_t reply_count;
    int64_t timeout_us;
    redis_reply_cb *on_reply; /* may be NULL */
    redis_done_cb *on_done;   /* may be NULL */
    void *ctx;
};

/* Sends a request. UNAVAILABLE at once if the node is down (lock.A13), LIMIT if too much is in
 * flight, NOMEM. */
enum status redis_node_send(struct redis_node *node, const struct redis_request *request,
                            struct err *err) MUST_USE;

/* An argument of a command. One call of a script passes all ARGV in `args`; it is sent as EVALSHA,
 * and once as EVAL after NOSCRIPT. One reply, with index 0. */
struct redis_arg {
    const char *bytes;
    size_t len;
};

static inline struct redis_arg redis_bytes(const char *bytes, size_t len)
{
    return (struct redis_arg){.bytes = bytes, .len = len};
}

static inline struct redis_arg redis_word(const char *text)
{
    return redis_bytes(text, strlen(text));
}

struct redis_script_call {
    const struct redis_script *script;
    const struct redis_arg *keys;
    size_t key_count;
    const struct redis_arg *args;
    size_t arg_count;
    int64_t timeout_us;
    redis_reply_cb *on_reply;
    redis_done_cb *on_done;
    void *ctx;
};

enum status redis_node_call(struct redis_node *node, const struct redis_script_call *call,
                            struct err *err) MUST_USE;

/* Appends one command in RESP, binary-safe (lock.K4). */
enum status redis_command(struct buf *out, const struct redis_arg *args, size_t count,
                          struct err *err) MUST_USE;

#endif
